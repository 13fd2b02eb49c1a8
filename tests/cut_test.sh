#!/bin/bash
# The stages of a run have 0, 8 and 4 layers. The run loses a node, and one process recomputes the run. Its checkpoint
# is then trained with its layers divided differently, in one process and in a run; weights and loss must be equal. An
# export must equal that of the model with the original stages.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify skippipe-model skippipe-plan
sk=$bin/skippipe
common=(--headless --format jsonl --time-scale 0 --eval-every 0 --budget 0.2 --ahead 0)

run() { # run NAME OPTION...: runs a demo to its end, and verifies it
	local name=$1
	shift
	"$sk" demo "${common[@]}" --run-dir "$dir/$name" "$@" >"$dir/$name.events" 2>"$dir/$name.err" ||
		die "$name: exit status $?"
	check_gone "$dir/$name"
}
losses() { # losses OPTION...: prints the losses of a training
	"$sk" train --microbatches 3 --validate-every 0 --format jsonl "$@" | sed -n 's/.*"loss":\([0-9.]*\),.*/\1/p'
}

run first --agents 5 --stages 1,2,2 --cut 0,8,4 --skip 0 --iterations 6 --checkpoint-every 3 --at 3:kill:1
check_verify "$dir/first" 5
[ "$(field committed <"$dir/verify.json")" = 6 ] || die "$(field committed <"$dir/verify.json") commits"
grep -q '"stage_work": *\[0\.0[0-9]*,2\.0,1\.0\]' "$dir/first/cluster.json" || die "the work of the stages: $(grep -o '"stage_work[^]]*' "$dir/first/cluster.json")"
"$sk" plan "$dir/first/cluster.json" --budget 0.1 -o "$dir/plan.json" 2>/dev/null || die "no plan of the run's cluster"
"$sk" simulate "$dir/first/cluster.json" "$dir/plan.json" >/dev/null || die "the plan breaks a rule"

# ---- the checkpoint with its layers divided differently ----
old=$dir/first/checkpoints/00000006
losses --from "$old" --iterations 8 --out "$dir/same" >"$dir/same.losses"
for cut in 5,7 1,1,1,9; do
	losses --from "$old" --cut $cut --iterations 8 --out "$dir/again" --force >"$dir/again.losses"
	paste "$dir/same.losses" "$dir/again.losses" | awk 'NR == 1 && $1 != $2 { bad = 1 }
		($1 - $2) ^ 2 > 1e-8 { bad = 1 } END { exit bad || NR != 2 }' ||
		die "cut $cut: other losses: $(paste "$dir/same.losses" "$dir/again.losses")"
done

# Dividing a model in another way without training it changes nothing, nor does an export followed by an import. An
# export has its tensors in the order of the stages, so two exports may differ in this order only.
"$sk" export "$old" --out "$dir/old.hf" >/dev/null || die "export"
"$sk" import "$dir/old.hf" --cut 5,7 --out "$dir/back" >/dev/null || die "import"
losses --from "$old" --cut 5,7 --iterations 6 --out "$dir/cut" >/dev/null
for folder in back cut; do "$sk" export "$dir/$folder" --out "$dir/$folder.hf" >/dev/null || die "export of $folder"; done
cmp "$dir/back.hf/model.safetensors" "$dir/cut.hf/model.safetensors" || die "the exports differ"
head -c 2000 README.md >"$dir/text"
for folder in old.hf cut.hf; do
	"$sk" eval "$dir/$folder" --corpus "$dir/text" --batches 1 --logits "$dir/$folder.logits" >/dev/null || die "eval of $folder"
done
cmp "$dir/old.hf.logits" "$dir/cut.hf.logits" || die "the logits differ"

# ---- a run continues with other stages ----
run second --agents 4 --stages 2,2 --cut 3,9 --skip 0 --from "$old" --iterations 2
check_verify "$dir/second" 4
grep -q '"iteration": 8' "$dir/second/checkpoints/00000002/manifest.json" || die "the steps did not go on"

# ---- divisions that are not possible ----
expect 1 '--cut: 0 \+ 5 \+ 3 is 8 layers, but the model has 12' "$sk" demo --headless --agents 3 --stages 1,1,1 \
	--cut 0,5,3 --run-dir "$dir/none"
expect 1 '--cut gives 2 stages, and the cluster has 3' "$sk" demo --headless --agents 3 --stages 1,1,1 --cut 6,6 \
	--run-dir "$dir/none"
expect 1 '--stack, --recipe: .*stage 0, which has no layers' "$sk" demo --headless --agents 4 --stages 1,1,1,1 \
	--cut 0,5,3,4 --recipe speed --iterations 9 --run-dir "$dir/none"
expect 2 '--cut: stage 2 has no layers' "$sk" train --cut 3,9,0
expect 2 '--cut 6;6: expected the number of layers' "$sk" train --cut '6;6'
expect 2 '--cut has 2 stages, --set n_stages or --skip 3' "$sk" train --cut 6,6 --set n_stages=3
