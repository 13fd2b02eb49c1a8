#!/bin/bash
# skippipe train follows the paths of a plan, or the plans of a run's phases, each in its phase.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-plan skippipe-model sqlite3
cluster=$(dirname "$0")/../schedule/tests/data/geo20_s8.json
plan=$dir/plan.json

"$bin/skippipe" plan "$cluster" --skip 2 --evaluations 10000 --threads 1 -o "$plan" 2>"$dir/plan.err" ||
	die "plan: exit status $?"

# train OPTION...: trains with the plan, stops, and resumes the training
train() {
	"$bin/skippipe" train --seed 3 --validate-every 0 --format jsonl "$@" \
		2>"$dir/train.err" || die "train $*: exit status $?" >&2
}
losses() { grep '"event":"iteration"' "$1" | field loss | tail -n "$2"; }
shape="--set n_stages=6 --set n_layers=6 --set dim=16 --set ffn_dim=32 --set n_heads=2 --set n_kv_heads=2 --set sequence=16"
train $shape --plan "$plan" --iterations 4 --out "$dir/whole" >"$dir/1234"
{ printf '\357\273\277' && cat "$plan"; } >"$dir/marked.json" # with a byte order mark, as some editors write it
train $shape --plan "$dir/marked.json" --iterations 1 --out "$dir/a" >"$dir/1"
train --from "$dir/a" --plan "$plan" --iterations 4 --out "$dir/c" >"$dir/234"
losses "$dir/1234" 4 >"$dir/want"
{ losses "$dir/1" 1; losses "$dir/234" 3; } >"$dir/got"
[ "$(wc -l <"$dir/want")" = 4 ] && cmp "$dir/want" "$dir/got" || die "training does not go on with its plan"
for file in "$dir"/whole/*; do
	case $file in *stage*) cmp "$file" "$dir/c/$(basename "$file")" || die "$(basename "$file") differs" ;; esac
done
train $shape --skip 2 --iterations 4 >"$dir/drawn"
losses "$dir/drawn" 4 | cmp -s - "$dir/want" && die "the plan changes nothing"

# In the first phase all microbatches skip as many stages as allowed, whether or not there is a plan. The second phase
# follows its plan.
"$bin/skippipe" plan "$cluster" --recipe speed --iterations 10 --evaluations 2000 --threads 1 -o "$dir/phases.json" \
	2>/dev/null || die "plan --recipe: exit status $?"
robust() { "$bin/skippipe" plan schedule/tests/data/shipped20.json --assignment free --recipe robust --iterations 10 --evaluations 2000 --threads 1 "$@" | grep -o '"path":[^]]*'; }
robust >"$dir/recipe.paths" && robust --no-swaps | diff -q "$dir/recipe.paths" - || die "plan --recipe swaps stages"
follow() { train $shape --plan "$dir/phases.json" --grad-norm visits --iterations "$@"; }
follow 10 >"$dir/phases"
train $shape --skip 4 --always 5 --grad-norm visits --microbatches 30 --iterations 3 >"$dir/recipe"
losses "$dir/recipe" 3 >"$dir/want"
losses "$dir/phases" 10 | head -n 3 | cmp - "$dir/want" || die "the first phase visits other stages than 0 and 5"
sqlite3 :memory: "SELECT json_extract(readfile('$dir/phases.json'), '\$.with_moves.phases[1].plan')" >"$dir/second.json"
follow 3 --out "$dir/d" >/dev/null
train --from "$dir/d" --plan "$dir/second.json" --grad-norm visits --iterations 10 >"$dir/second"
losses "$dir/second" 7 >"$dir/want"
losses "$dir/phases" 7 | cmp - "$dir/want" || die "the second phase does not follow its plan"
follow 10 --stack >"$dir/stacked"
losses "$dir/stacked" 7 | cmp -s - "$dir/want" && die "the second phase does not stack its stages"

refuses() {
	local want=$1
	shift
	"$bin/skippipe" "$@" >/dev/null 2>"$dir/no" && die "$*: was accepted"
	grep -q -e "$want" "$dir/no" || { cat "$dir/no"; die "$*: expected: $want"; }
}
refuses "plan.json: expected one plan" train $shape --plan "$plan" --plan "$plan"
# A plan decides about paths, so options about paths are refused. Edited plans are checked.
for option in '--skip 1' '--skip-share 30%:1' '--skip-schedule 1,0' '--recipe speed' '--always 5' '--whole-first 1' \
	'--whole-last 1' '--swap 0.1' '--break order'; do
	refuses "${option%% *}: not with --plan" train $shape --plan "$plan" $option
done
refuses "--microbatches 29: $plan has 30" train $shape --plan "$plan" --microbatches 29
stages_of() { sqlite3 :memory: "SELECT json_extract(readfile('$plan'), '\$.assignment[$1][0]')"; }
one=$(stages_of 1) two=$(stages_of 2) three=$(stages_of 3)
edit() { # edit NAME N PATH: copies the plan to NAME.json; its first N microbatches go from their data node to PATH
	local m paths=
	for ((m = 0; m < $2; m++)); do
		paths+=", '\$.microbatches[$m].path', json('[' || json_extract(plan, '\$.microbatches[$m].path[0]') || ',$3]')"
	done
	sqlite3 :memory: "SELECT json_set(plan$paths) FROM (SELECT readfile('$plan') AS plan)" >"$dir/$1.json"
}
edit twice 1 "$one,$two,$two"
refuses 'twice.json: microbatches\[0\].path\[3\]: stage 2 does not follow stage 2' train $shape --plan "$dir/twice.json"
edit order 1 "$three,$one,$two"
refuses 'order.json: microbatches\[0\].path\[2\]: stage 1 does not follow stage 3' train $shape --plan "$dir/order.json"
edit rare 6 "$one"
refuses 'rare.json: microbatches: [0-9]* visit stage [0-9], expected' train $shape --plan "$dir/rare.json"
sqlite3 :memory: "SELECT json_set(readfile('$plan'), '\$.assignment[3][0]', $two)" >"$dir/both.json"
refuses "both.json: assignment\[3\]\[0\]: node $two is in stage 2 too" train $shape --plan "$dir/both.json"
sed 's/"from": *1,/"from": 2,/g' "$dir/phases.json" >"$dir/late.json"
refuses 'late.json: with_moves.phases\[0\]: expected from' train $shape --plan "$dir/late.json"

# plan --hours: the loss that recipes reach in a given time
hours() { "$bin/skippipe" plan schedule/tests/data/shipped20.json --hours 60 --evaluations 500 --threads 1 --assignment free "$@"; }
hours --model tiny --sum-wire q6 --overlap-sync >"$dir/hours" 2>"$dir/hours.err" || die "plan --hours: exit status $?"
grep -q '^speed .*%$' "$dir/hours" || die "plan --hours gives no loss for speed: $(cat "$dir/hours")"
hours --format json >"$dir/hours.json" || die "plan --hours --format json: exit status $?"
[ "$(grep -o '"recipe":' "$dir/hours.json" | wc -l)" = 5 ] || die "plan --hours names other than five recipes"
grep -q loss_change "$dir/hours.json" && die "plan --hours knows losses without a model"
hours --recipe speed >/dev/null 2>"$dir/hours.err" && die "--hours and --recipe go together"
grep -q 'hours excludes' "$dir/hours.err" || die "the error does not name --hours: $(cat "$dir/hours.err")"
