#!/bin/bash
# Runs the given unit tests. Then, unless --unit is given, runs the scripts tests/*_test.sh, which use several processes
# and real sockets. Each test has a time limit, and two or three run at a time. A script with exit status 77 was skipped
# and has printed the reason. The last line counts the results.
set -u
cd "$(dirname "$0")/.."
unit=0
[ "${1:-}" = --unit ] && { unit=1; shift; }
build=$1
shift
export SKIPPIPE_BUILD=$PWD/$build
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

one() { # one NAME LIMIT COMMAND...: runs a test, and keeps its result in $logs
	local name=$1 limit=$2 start=$SECONDS log rc
	shift 2
	log=$(mktemp -p "$logs")
	timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
	rc=$?
	case $rc in
	0) echo passed >"$log.word"; echo "ok   $name ($((SECONDS - start)) s)" ;;
	77) echo skipped >"$log.word"; echo "skip $name: $(tail -n 1 "$log")" ;;
	*)
		echo failed >"$log.word"
		# Prints the reason of the failure first, then the logs of the programs.
		printf '%s\n' "FAIL $name (exit $rc)" "$({ grep 'FAILED' "$log"; tail -n 60 "$log"; } | sed 's/^/     /')" ;;
	esac
}
count() { grep -lx "$1" "$logs"/*.word 2>/dev/null | wc -l; }

each() { # each AT_A_TIME LIMIT TEST...: runs several tests
	local at_a_time=$1 limit=$2 t
	shift 2
	for t in "$@"; do
		[ -e "$t" ] || continue
		while [ "$(jobs -rp | wc -l)" -ge "$at_a_time" ]; do wait -n; done
		one "${t#"$build"/}" "$limit" "$t" &
	done
	wait
}

# Unit tests run three at a time, because many of them wait for events that must not happen. The controller's tests wait
# longest and the simulation computes longest, so these run first.
each 3 600 $(printf '%s\n' "$@" | grep -E '/(sim|controller)/') $(printf '%s\n' "$@" | grep -vE '/(sim|controller)/')

# Scripts wait for processes half of the time, so three run at a time; the longest begin first. Some
# scripts measure times, or expect a console to show something within seconds; these run two at a time.
long=(tests/{fleet_bed,fleet,choose,hostile,machines,crash_points,controller_killed,demo_faults,takeover,odd_failures}_test.sh)
quick=(tests/{console_acts,console_reconnect,console_terminal,demo_terminal,large_packets,overlap,spares,wan_bed,wan_faults,wan_pipe}_test.sh)
others() { printf '%s\n' tests/*_test.sh tests/parity/*_test.sh | grep -vxFf <(printf '%s\n' "${long[@]}" "${quick[@]}"); }
[ $unit = 1 ] || { each 3 600 "${long[@]}" $(others); each 2 600 "${quick[@]}"; }
echo "$(count passed) passed, $(count failed) failed, $(count skipped) skipped"
[ "$(count failed)" = 0 ] && [ "$(count passed)" -gt 0 ]
