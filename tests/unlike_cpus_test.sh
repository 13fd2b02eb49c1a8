#!/bin/bash
# A run on CPUs of several kinds: replicas of a stage compute with different instruction sets. Their
# gradients differ, but their weights must be equal bit for bit. verify recomputes the run with one
# of the sets and compares within tolerances. In a second run a node fails and returns.
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

# judge VERIFY.JSON LEAST: checks that the replicas' weights are equal in at least LEAST hashes, and
# that every instruction set is listed. Checks that one set recomputes, and that tolerances apply
# from the first iteration in which another set computed.
judge() {
	python3 - "$1" "$2" "$sets" "$run/run.db" <<'EOF' || die "verify reports: $(cat "$1")"
import json, sqlite3, sys
v, least, sets = json.load(open(sys.argv[1])), int(sys.argv[2]), sys.argv[3].split(',')
db = sqlite3.connect(sys.argv[4])
mixed = db.execute('select 1 from counted join computed using (iteration, node) group by iteration, stage'
                   ' having count(distinct device) > 1').fetchall()
assert mixed, 'no stage had two kinds'
assert v['same'] and v['differing'] == 0 and v['hashes'] >= least, v
assert sorted(c['device'].split()[0] for c in v['computed']) == sorted(sets), v
here = v['computed'][0]['here']
assert all(c['here'] == here and c['bit_for_bit'] == (c['device'] == here) for c in v['computed']), v
assert sum(c['bit_for_bit'] for c in v['computed']) == 1, v
other = db.execute('select min(iteration) from computed where device <> ?', [here]).fetchone()[0]
rerun = db.execute('select min(iteration) from commits where rerun > 0').fetchone()[0]
assert v['unlike_from'] == min(other, rerun or other), v
print('within tolerances from iteration %d: losses %g, norms %g' %
      (v['unlike_from'], v['loss_difference'], v['norm_difference']))
EOF
}
check_verify "$run" 8 # a plan may leave a node without work
judge "$dir/verify.json" 18

# The operator chooses the instruction set that recomputes, and the summary names it.
"$bin/skippipe" verify "$run" --device cpu:plain >"$dir/plain" ||
	die "beyond the tolerances: $(cat "$dir/plain")"
grep -q '^recomputed with cpu:plain ' "$dir/plain" && grep -q 'compared within tolerances from' "$dir/plain" ||
	die "the summary does not say how it compared: $(cat "$dir/plain")"
cat "$dir/plain"

# Replicas stay equal when nodes with other CPUs replace a lost node.
run=$dir/again
"$bin/skippipe" demo --agents 9 --stages 3,3,3 --skip 1/3 --headless --format jsonl --iterations 5 \
	--eval-every 0 --at 2:fail:4 --at 4:recover:4 --device "$sets" --run-dir "$run" \
	>"$dir/events" 2>"$dir/demo.err" || die "the run with a loss failed"
check_verify "$run" 8
judge "$dir/verify.json" 25
