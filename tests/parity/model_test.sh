#!/bin/bash
# Compares the model with LlamaForCausalLM of the transformers library on the same weights: logits, loss and every
# gradient. The test is skipped if torch or transformers cannot be imported. SKIPPIPE_PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/../.."
python=${SKIPPIPE_PYTHON:-python3}
"$python" -c 'import torch, transformers' 2>/dev/null || {
	echo "$python cannot import torch and transformers (SKIPPIPE_PYTHON names another)"
	exit 77
}
model=${SKIPPIPE_BUILD:-$PWD/build}/bin/skippipe-model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The text repeats 64 random letters. Every sample of 64 tokens is therefore the same, and compare.py can compute the
# gradient of a microbatch.
"$python" - "$work/text" <<'PYTHON'
import random, sys
random.seed(5)
line = "".join(random.choice("abcdefghijklmnopqrstuvwxyz \n") for _ in range(64))
open(sys.argv[1], "w").write(line * 4096)
PYTHON

for shape in "n_kv_heads=3 tied=false" "n_kv_heads=6 tied=true" "n_kv_heads=1 tied=false"; do
	set -- $shape
	rm -rf "$work/start" "$work/step" "$work/hf"
	# Large initial weights, so that every part of the model matters.
	one="--corpus $work/text --batches 1 --set $1 --set $2 --set init_std=0.15 --set batch=1 --set n_layers=4 --set n_stages=2 --set clip=0"
	"$model" train $one --iterations 0 --out "$work/start" >/dev/null
	"$model" train --from "$work/start" --corpus "$work/text" --iterations 1 --microbatches 1 --out "$work/step" >/dev/null
	"$model" export "$work/start" --out "$work/hf" >/dev/null
	loss=$("$model" eval "$work/start" --corpus "$work/text" --batches 1 --format jsonl --logits "$work/logits.safetensors")
	echo "$shape"
	"$python" tests/parity/compare.py "$work" "$loss"
done
