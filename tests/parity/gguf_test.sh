#!/bin/bash
# The GGUF loader of the transformers library reads an exported GGUF file and gives the same logits. The test is skipped
# if torch, transformers, gguf or accelerate cannot be imported. SKIPPIPE_PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/../.."
python=${SKIPPIPE_PYTHON:-python3}
"$python" -c 'import torch, transformers, gguf, accelerate' 2>/dev/null || {
	echo "$python cannot import torch, transformers, gguf and accelerate (SKIPPIPE_PYTHON names another)"
	exit 77
}
model=${SKIPPIPE_BUILD:-$PWD/build}/bin/skippipe-model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$model" train --iterations 0 --batches 0 --set init_std=0.15 --out "$work/start" >/dev/null
"$model" export "$work/start" --format gguf --out "$work/model.gguf" >/dev/null
"$model" eval "$work/start" --batches 1 --logits "$work/logits.safetensors" >/dev/null
"$python" - "$work" <<'PYTHON'
import sys
import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

work = sys.argv[1]
model = LlamaForCausalLM.from_pretrained(work, gguf_file="model.gguf", dtype=torch.float32)
ours = load_file(work + "/logits.safetensors")
logits = model(ours["tokens"].long()).logits
error = ((logits - ours["logits"]).norm() / logits.norm()).item()
print(f"logits: relative error {error:.1e}")
sys.exit(not error <= 1e-4)
PYTHON
