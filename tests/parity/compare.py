"""Compares our logits, loss and gradients with those of transformers. Exit status 1: they differ too much."""
import glob
import json
import sys

import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

LOGITS, LOSS, GRADIENT = 1e-4, 1e-5, 1e-4  # limits of relative errors

work, evaluation = sys.argv[1], json.loads(sys.argv[2])
model = LlamaForCausalLM.from_pretrained(work + "/hf", dtype=torch.float32,
                                         attn_implementation="eager")
ours = load_file(work + "/logits.safetensors")
tokens = ours["tokens"].long()
targets = tokens.roll(-1, dims=1)  # the text repeats after each sequence

logits = model(tokens).logits
loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
loss.backward()

failed = []


def check(what, error, limit):
    if not error <= limit:
        failed.append(what)
        print(f"{what}: relative error {error:.2e}, more than {limit:.0e}")


def distance(a, b):
    return ((a - b).norm() / b.norm()).item()


logits_error = distance(ours["logits"], logits.detach())
check("logits", logits_error, LOGITS)
loss_error = abs(evaluation["loss"] - loss.item()) / loss.item()
check("loss", loss_error, LOSS)

# AdamW begins with moments of 0. After its first step, the first moment is (1 - beta1) times the gradient.
worst, compared = 0, 0
moments = {}
for path in glob.glob(work + "/step/*.safetensors"):
    moments.update(load_file(path))
recipe = json.load(open(work + "/step/manifest.json"))["model"]["recipe"]
for name, parameter in model.named_parameters():
    gradient = moments["optimizer.moment1." + name] / (1 - recipe["beta1"])
    error = distance(gradient, parameter.grad)
    worst, compared = max(worst, error), compared + 1
    check("gradient of " + name, error, GRADIENT)
if compared != sum(name.startswith("model.") or name.startswith("lm_head") for name in moments):
    failed.append("not every tensor was compared")
print(f"logits {logits_error:.1e}, loss {loss_error:.1e}, worst of {compared} gradients {worst:.1e}")
sys.exit(bool(failed))
