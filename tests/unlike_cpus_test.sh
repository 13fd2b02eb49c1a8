#!/bin/bash
# A run on CPUs that are unlike: replicas of a stage compute with different instruction sets. Their
# gradients differ, their weights must not, by a bit; and verify computes each node's contributions as
# that node did. Then one is killed meanwhile and comes back.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify python3

best=$("$bin/skippipe" agent --devices | sed -n 's/^cpu:\([^ ]*\) .*/\1/p')
case $best in
v4) sets=cpu:v4,cpu:v3,cpu:plain ;;
v3) sets=cpu:v3,cpu:plain ;;
*) skip "this CPU has one instruction set: $best" ;;
esac
run=$dir/run
"$bin/skippipe" demo --agents 9 --stages 3,3,3 --skip 1/3 --headless --format jsonl --iterations 3 \
	--eval-every 0 --device "$sets" --run-dir "$run" >"$dir/events" 2>"$dir/demo.err" ||
	die "the run failed"
[ "$(count "$dir/events" iteration)" = 3 ] || die "not three iterations"
grep -q differ "$dir/events" && die "replicas differ"
# judge VERIFY.JSON LEAST: same; every node's kind computed again as it was; all weights with the
# replay's, but where nodes of unlike kinds stood in for one another: then still with one another.
judge() {
	python3 - "$1" "$2" "$sets" "$run/run.db" <<'EOF' || die "verify says otherwise: $(cat "$1")"
import json, sqlite3, sys
v, least, sets = json.load(open(sys.argv[1])), int(sys.argv[2]), sys.argv[3].split(',')
mixed = sqlite3.connect(sys.argv[4]).execute(
    'select 1 from counted join computed using (iteration, node) group by iteration, stage'
    ' having count(distinct device) > 1').fetchall()
assert mixed, 'no stage had two kinds'
assert v['same'] and v['differing'] == 0 and v['hashes'] >= least, v
assert sorted(c['device'].split()[0] for c in v['computed']) == sorted(sets), v
assert all(c['bit_for_bit'] and c['device'] == c['here'] for c in v['computed']), v
print('bit for bit' if v['unlike_from'] == 0 else 'bit for bit until %d' % v['unlike_from'])
EOF
}
check_verify "$run" 8 # a plan may do without one of them
judge "$dir/verify.json" 18

# Everything by one set: gradients are others, so weights are, within limits that are said.
"$bin/skippipe" verify "$run" --device cpu:plain >"$dir/plain" || die "too far apart: $(cat "$dir/plain")"
grep -q 'not bit for bit from iteration 1 on' "$dir/plain" || die "it does not say so: $(cat "$dir/plain")"
cat "$dir/plain"

# A run in which unlike nodes stood in for one another is still held to something.
run=$dir/again
"$bin/skippipe" demo --agents 9 --stages 3,3,3 --skip 1/3 --headless --format jsonl --iterations 5 \
	--eval-every 0 --at 2:fail:4 --at 4:recover:4 --device "$sets" --run-dir "$run" \
	>"$dir/events" 2>"$dir/demo.err" || die "the run with a loss failed"
check_verify "$run" 8
judge "$dir/verify.json" 25
