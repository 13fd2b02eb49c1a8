#!/bin/bash
# Runs the unit tests given, then (without --unit) the scripts tests/*_test.sh: several
# processes, real sockets, each under a time limit, two side by side. A script that exits 77 was skipped and has
# said why. The last line counts.
set -u
cd "$(dirname "$0")/.."
unit=0
[ "${1:-}" = --unit ] && { unit=1; shift; }
build=$1
shift
export SKIPPIPE_BUILD=$PWD/$build
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

one() { # one NAME LIMIT COMMAND...: says how it went, and leaves the word in $logs
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
		# Why it failed stands above the programs' own words.
		printf '%s\n' "FAIL $name (exit $rc)" "$({ grep 'FAILED' "$log"; tail -n 60 "$log"; } | sed 's/^/     /')" ;;
	esac
}
count() { grep -lx "$1" "$logs"/*.word 2>/dev/null | wc -l; }

each() { # each AT_A_TIME LIMIT TEST...
	local at_a_time=$1 limit=$2 t
	shift 2
	for t in "$@"; do
		[ -e "$t" ] || continue
		while [ "$(jobs -rp | wc -l)" -ge "$at_a_time" ]; do wait -n; done
		one "${t#"$build"/}" "$limit" "$t" &
	done
	wait
}

# Side by side, as they spend much of their time waiting for what must not come: of the unit tests the controller's
# most, so they are the first.
each 3 300 $(printf '%s\n' "$@" | grep /controller/) $(printf '%s\n' "$@" | grep -v /controller/)
[ $unit = 1 ] || each 2 600 tests/*_test.sh tests/parity/*_test.sh
echo "$(count passed) passed, $(count failed) failed, $(count skipped) skipped"
[ "$(count failed)" = 0 ] && [ "$(count passed)" -gt 0 ]
