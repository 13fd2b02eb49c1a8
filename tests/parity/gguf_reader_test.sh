#!/bin/bash
# The reader of llama.cpp's package gguf loads an exported file: its keys are those of the model, and its tensors are the
# model's bits, with the rows of q and k as llama.cpp orders them. The test is skipped if gguf or safetensors cannot be
# imported. SKIPPIPE_PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/../.."
python=${SKIPPIPE_PYTHON:-python3}
"$python" -c 'import gguf, safetensors.numpy' 2>/dev/null || {
	echo "$python cannot import gguf and safetensors (SKIPPIPE_PYTHON names another)"
	exit 77
}
model=${SKIPPIPE_BUILD:-$PWD/build}/bin/skippipe-model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

llama3="--set rope_factor=8 --set rope_low_freq_factor=1 --set rope_high_freq_factor=4 --set rope_original_context=64"
for scaling in "" "--set rope_factor=4" "$llama3"; do
	rm -rf "$work/start" "$work/hf" "$work/model.gguf"
	# shellcheck disable=SC2086
	"$model" train --iterations 0 --batches 0 --set init_std=0.15 $scaling --out "$work/start" >/dev/null
	"$model" export "$work/start" --format gguf --out "$work/model.gguf" >/dev/null
	"$model" export "$work/start" --out "$work/hf" >/dev/null
	"$python" - "$work" <<'PYTHON'
import json, math, sys
import numpy as np
from gguf import GGUFReader
from safetensors.numpy import load_file

work = sys.argv[1]
reader = GGUFReader(work + "/model.gguf")
config = json.load(open(work + "/hf/config.json"))
theirs = load_file(work + "/hf/model.safetensors")
ours = {t.name: t.data for t in reader.tensors}
value = lambda key: reader.get_field(key).contents()
heads, kv, head = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
rope = config["rope_parameters"]

expected = {
    "general.architecture": "llama",
    "llama.block_count": config["num_hidden_layers"],
    "llama.context_length": config["max_position_embeddings"],
    "llama.embedding_length": config["hidden_size"],
    "llama.feed_forward_length": config["intermediate_size"],
    "llama.attention.head_count": heads,
    "llama.attention.head_count_kv": kv,
    "llama.rope.dimension_count": head,
    "llama.vocab_size": config["vocab_size"],
}
for key, wanted in expected.items():
    assert value(key) == wanted, (key, value(key), wanted)
assert len(value("tokenizer.ggml.tokens")) == config["vocab_size"]
assert abs(value("llama.rope.freq_base") - rope["rope_theta"]) < 1e-3
linear = reader.get_field("llama.rope.scaling.type") is not None
assert linear == (rope["rope_type"] == "linear"), rope
assert not linear or value("llama.rope.scaling.factor") == rope["factor"]


def neighbours(w, n):
    """Halves of a head become neighbours."""
    return w.reshape(n, 2, head // 2, -1).swapaxes(1, 2).reshape(w.shape)


names = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
for name, tensor in theirs.items():
    short = name.removesuffix(".weight")
    if short.startswith("model.layers."):
        _, _, layer, part = short.split(".", 3)
        short = f"blk.{layer}.{names[part]}"
        if part == "self_attn.q_proj":
            tensor = neighbours(tensor, heads)
        if part == "self_attn.k_proj":
            tensor = neighbours(tensor, kv)
    else:
        short = names[short]
    assert np.array_equal(ours.pop(short + ".weight"), tensor), name
if rope["rope_type"] == "llama3":
    low, high, context = (rope[k] for k in ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings"))
    factors = []
    for i in range(head // 2):
        wave = 2 * math.pi * rope["rope_theta"] ** (2 * i / head)
        smooth = min(max((context / wave - low) / (high - low), 0), 1)
        factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    assert len(set(factors)) > 2
    np.testing.assert_allclose(ours.pop("rope_freqs.weight"), factors, rtol=1e-6)
assert not ours, list(ours)
print(f"{len(reader.tensors)} tensors, RoPE {rope['rope_type']}: as in the model")
PYTHON
done
