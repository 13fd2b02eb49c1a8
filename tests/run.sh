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
passed=0 failed=0 skipped=0

one() { # one NAME LIMIT COMMAND...
	local name=$1 limit=$2 start=$SECONDS rc
	shift 2
	timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
	rc=$?
	case $rc in
	0) passed=$((passed + 1)); echo "ok   $name ($((SECONDS - start)) s)" ;;
	77) skipped=$((skipped + 1)); echo "skip $name: $(tail -n 1 "$log")" ;;
	*) failed=$((failed + 1)); echo "FAIL $name (exit $rc)"; tail -n 60 "$log" | sed 's/^/     /' ;;
	esac
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for t in "$@"; do
	one "${t#"$build"/}" 300 "$t"
done
if [ $unit = 0 ]; then
	for t in tests/*_test.sh tests/parity/*_test.sh; do
		[ -e "$t" ] && one "$t" 600 "$t"
	done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
