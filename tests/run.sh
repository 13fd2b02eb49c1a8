#!/bin/bash
# Runs the unit tests given, then (without --unit) the scripts tests/*_test.sh: several
# processes, real sockets, each under a time limit. A script that exits 77 was skipped and has
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
	*) echo failed >"$log.word"; printf '%s\n' "FAIL $name (exit $rc)" "$(tail -n 60 "$log" | sed 's/^/     /')" ;;
	esac
}
count() { grep -lx "$1" "$logs"/*.word 2>/dev/null | wc -l; }

# Unit tests three at a time: some spend minutes waiting for what must not come, the controller's most, so they
# are the first.
for t in $(printf '%s\n' "$@" | grep /controller/) $(printf '%s\n' "$@" | grep -v /controller/); do
	while [ "$(jobs -rp | wc -l)" -ge 3 ]; do wait -n; done
	one "${t#"$build"/}" 300 "$t" &
done
wait
if [ $unit = 0 ]; then
	for t in tests/*_test.sh tests/parity/*_test.sh; do
		[ -e "$t" ] && one "$t" 600 "$t"
	done
fi
echo "$(count passed) passed, $(count failed) failed, $(count skipped) skipped"
[ "$(count failed)" = 0 ] && [ "$(count passed)" -gt 0 ]
