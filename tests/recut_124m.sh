#!/bin/bash
# Trains the 124m preset with five agents, one for each stage. The model is cut into 2 stages and back into 5 during the
# training. With one microbatch in each iteration, each gradient has one contribution, so no order of additions depends
# on the stages. The weights are therefore equal to the bit to those of a run whose stages never change. Both are
# exported, and transformers reads them with the same logits. `make long` runs this script. The script is skipped if
# torch and transformers cannot be imported (SKIPPIPE_PYTHON names another interpreter), or memory is short.
# SKIPPIPE_PRESET names another model.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify skippipe-model
sk=$bin/skippipe python=${SKIPPIPE_PYTHON:-python3} preset=${SKIPPIPE_PRESET:-124m}
"$python" -c 'import torch, transformers' 2>/dev/null ||
	skip "$python cannot import torch and transformers (SKIPPIPE_PYTHON names another)"
free_mib=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
[ "$preset" != 124m ] || [ "$free_mib" -ge 10000 ] || skip "$free_mib MiB are free, 10000 are wanted"
head -c 200000 docs/convergence.md docs/agent.md >"$dir/text"

train() { # train NAME OPTION...: runs a demo, verifies it and exports the model
	local name=$1 begin=$SECONDS
	shift
	"$sk" demo --headless --format jsonl --model "$preset" --batch 1 --sequence 128 --agents 5 --stages 1,1,1,1,1 \
		--skip 0 --microbatches 1 --iterations 4 --wire fp32 --sum-wire fp32 --time-scale 0 --budget 0.1 --ahead 0 \
		--eval-every 0 --checkpoint-every 100 --gather-s 600 --corpus "$dir/text" --run-dir "$dir/$name" "$@" \
		>"$dir/$name.events" 2>"$dir/$name.err" || die "$name: exit status $?"
	check_gone "$dir/$name"
	check_verify "$dir/$name" 5
	"$sk" export "$dir/$name" --out "$dir/$name.hf" >/dev/null || die "export of $name"
	"$sk" eval "$dir/$name.hf" --set batch=1 --set sequence=128 --batches 1 --corpus "$dir/text" \
		--logits "$dir/$name.logits" >/dev/null || die "eval of $name"
	rm -r "$dir/$name"
	echo "$name: $((SECONDS - begin)) s"
}

train never
train recut --at 2:cut:6,6 --at 4:cut:2,2,3,3,2
[ "$(grep '"event":"cut"' "$dir/recut.events" | field layers | tr '\n' ' ')" = '"6,6" "2,2,3,3,2" ' ] ||
	die "the stages changed otherwise: $(grep '"event":"cut"' "$dir/recut.events")"
cmp "$dir/never.hf/model.safetensors" "$dir/recut.hf/model.safetensors" || die "other weights than of the run never cut"
cmp "$dir/never.logits" "$dir/recut.logits" || die "other logits than of the run never cut"
"$python" - "$dir" <<'PYTHON' || die "transformers"
import sys
import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

LIMIT = 1e-4  # limit of a logit's error between skippipe and transformers, as a share of the largest logit
work = sys.argv[1]
ours = load_file(work + "/recut.logits")
theirs = {}
for name in ("never", "recut"):
    model = LlamaForCausalLM.from_pretrained(f"{work}/{name}.hf", dtype=torch.float32).eval()
    with torch.no_grad():
        theirs[name] = model(ours["tokens"].long()).logits
error = ((ours["logits"] - theirs["recut"]).abs().max() / theirs["recut"].abs().max()).item()
same = torch.equal(theirs["never"], theirs["recut"])
print(f"{tuple(ours['logits'].shape)} logits: skippipe and transformers differ by {error:.1e} of the largest;", end=" ")
print("never cut and cut again:", "equal to the bit" if same else "DIFFERENT")
sys.exit(not (error <= LIMIT and same))
PYTHON
