# huggingface.py SKIPPIPE-MODEL FOLDER: makes LLaMAs with the transformers library, imports and exports them, and compares
# the logits at each step.
import json, os, subprocess, sys
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

transformers.utils.logging.disable_progress_bar()
program, work = sys.argv[1:]
LIMIT = 1e-4  # limit of a logit's error, as a share of the largest logit
llama3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


def run(*words):
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


def make(folder, rope=None, dtype=torch.float32, shards=None, **changes):
    config = dict(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=128,
        initializer_range=0.15,
    )
    config.update(changes)
    if rope:
        config["rope_parameters"] = {"rope_theta": 10000.0, **rope}
    torch.manual_seed(3)
    model = LlamaForCausalLM(LlamaConfig(**config)).to(dtype)
    model.save_pretrained(folder, **({"max_shard_size": shards} if shards else {}))
    if dtype != torch.float32:
        model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval()


def logits_of(model, tokens):
    with torch.no_grad():
        return model(tokens).logits


def compare(name, ours, theirs):
    error = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    print(f"{name}: {error:.1e} of the largest logit")
    if not error <= LIMIT:
        sys.exit(f"{name}: the logits differ")


def check(name, folder, model):
    run("import", folder, "--out", folder + ".start", "--set", "n_stages=2")
    run("eval", folder + ".start", "--batches", "1", "--logits", folder + ".logits")
    ours = load_file(folder + ".logits")
    theirs = logits_of(model, ours["tokens"].long())
    compare(name + ", imported", ours["logits"], theirs)
    run("export", folder + ".start", "--out", folder + ".again")
    again = LlamaForCausalLM.from_pretrained(folder + ".again").eval()
    compare(name + ", exported", logits_of(again, ours["tokens"].long()), theirs)


def old_spelling(folder):
    """Rewrites the configuration in the form of the library's versions before 5."""
    path = folder + "/config.json"
    config = json.load(open(path))
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = {"type" if k == "rope_type" else k: v for k, v in rope.items()}
    config["torch_dtype"] = config.pop("dtype", "float32")
    json.dump(config, open(path, "w"))


def stale_copy(folder):
    """Adds a tensor of the last shard, as zeros, to the first shard."""
    index = json.load(open(folder + "/model.safetensors.index.json"))["weight_map"]
    files = sorted(set(index.values()))
    assert len(files) > 1
    name = next(n for n in index if index[n] == files[-1])
    first = load_file(f"{folder}/{files[0]}")
    first[name] = torch.zeros_like(load_file(f"{folder}/{files[-1]}")[name])
    save_file(first, f"{folder}/{files[0]}", metadata={"format": "pt"})


def unread_tensors(folder):
    """Adds tensors that no LLaMA has, and biases of zero."""
    path = folder + "/model.safetensors"
    tensors = load_file(path)
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(8)
    tensors["model.layers.1.self_attn.q_proj.bias"] = torch.zeros(64)
    tensors["extra.scale"] = torch.zeros(0, dtype=torch.float8_e4m3fn)
    tensors["position_ids"] = torch.arange(4)[None]
    tensors["mask"] = torch.tensor([True, False, True])
    tensors["five"] = torch.ones(1, 2, 1, 2, 1, dtype=torch.float64)
    save_file(tensors, path, metadata={"format": "pt"})


folder = work + "/model"
kinds = {
    "plain": {},
    "grouped heads": {"num_key_value_heads": 2},
    "one head of keys": {"num_key_value_heads": 1},
    "tied": {"tie_word_embeddings": True},
    "llama3 scaling": {"rope": llama3},
    "llama3 scaling, theta 500000": {"rope": {**llama3, "rope_theta": 500000.0, "factor": 32.0}},
    "linear scaling": {"rope": {"rope_type": "linear", "factor": 4.0}},
    "plain, factor 1": {"rope": {"rope_type": "linear", "factor": 1.0}},
    "padded vocabulary": {"vocab_size": 320},
    "biases of zero": {"attention_bias": True, "mlp_bias": True},
    "bfloat16": {"dtype": torch.bfloat16},
    "float16": {"dtype": torch.float16},
    "shards with a stale copy": {"shards": "100KB"},
    "tensors that are not read": {},
    "old spelling, llama3": {"rope": llama3},
    "old spelling, linear": {"rope": {"rope_type": "linear", "factor": 2.5}},
}
for number, (name, changes) in enumerate(kinds.items()):
    folder = f"{work}/{number}"
    model = make(folder, **changes)
    if name.startswith("shards"):
        stale_copy(folder)
    if name.startswith("tensors"):
        unread_tensors(folder)
    if name.startswith("old"):
        old_spelling(folder)
    check(name, folder, model)
