#!/bin/bash
# Six agents train a model that the transformers library made, with its tokenizer (--from). The run's first weights are
# equal to the library's. Checkpoints go through rclone to a server of S3 (moto). lm_eval evaluates the export, on a
# task whose data are on this machine. Then the agents lose their disks, and the run resumes from S3. The test is
# skipped where Python cannot import these libraries (SKIPPIPE_PYTHON names another interpreter), or without rclone.
. "$(dirname "$0")/../lib.sh"
. tests/six_agents.sh
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify skippipe-model rclone
python=${SKIPPIPE_PYTHON:-python3}
"$python" -c 'import torch, transformers, tokenizers, accelerate, datasets, lm_eval, moto, flask' 2>/dev/null ||
	skip "$python cannot import torch, transformers, tokenizers, accelerate, lm_eval and moto (SKIPPIPE_PYTHON names another)"
sk=$bin/skippipe
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 HF_DATASETS_OFFLINE=1 HF_HOME=$dir/hf-home TOKENIZERS_PARALLELISM=false
secret=not-a-real-secret-$$
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export RCLONE_CONFIG=$dir/rclone.conf RCLONE_CONFIG_M_TYPE=s3 RCLONE_CONFIG_M_PROVIDER=Other \
	RCLONE_CONFIG_M_ACCESS_KEY_ID=someone RCLONE_CONFIG_M_SECRET_ACCESS_KEY=$secret \
	RCLONE_CONFIG_M_ENDPOINT=http://127.0.0.1:$port RCLONE_CONFIG_M_REGION=us-east-1
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
unset AWS_CA_BUNDLE # rclone refuses this variable
: >"$dir/rclone.conf"

# ---- a model, a tokenizer, a token shard, a task ----
cat docs/*.md >"$dir/text"
"$python" - "$dir" <<'PYTHON' >"$dir/make.out" 2>&1 || { cat "$dir/make.out"; die "no model"; }
import json, struct, sys
import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

work = sys.argv[1]
bpe = ByteLevelBPETokenizer()
bpe.train([work + "/text"], vocab_size=500, special_tokens=["<s>", "</s>"])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, bos_token="<s>", eos_token="</s>")
torch.manual_seed(1)
config = LlamaConfig(vocab_size=500, hidden_size=64, intermediate_size=96, num_hidden_layers=5, num_attention_heads=4,
                     num_key_value_heads=2, max_position_embeddings=64, bos_token_id=0, eos_token_id=1)
LlamaForCausalLM(config).save_pretrained(work + "/hf")
tokenizer.save_pretrained(work + "/hf")
tokens = tokenizer.encode(open(work + "/text", encoding="utf-8").read())
with open(work + "/tokens.bin", "wb") as f:
    f.write(struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253))
    f.write(struct.pack(f"<{len(tokens)}H", *tokens))
with open(work + "/task.jsonl", "w") as f:
    for i, (question, good, bad) in enumerate([("The controller", " plans", " zebra"), ("An agent", " trains", " qqq")] * 3):
        f.write(json.dumps({"question": question, "choices": [good, bad], "answer": 0}) + "\n")
PYTHON
mkdir "$dir/tasks"
cat >"$dir/tasks/here.yaml" <<END
task: here
dataset_path: json
dataset_kwargs:
  data_files:
    test: $dir/task.jsonl
output_type: multiple_choice
test_split: test
doc_to_text: "{{question}}"
doc_to_choice: choices
doc_to_target: answer
metric_list:
  - metric: acc
END

"$python" -m moto.server -H 127.0.0.1 -p "$port" >"$dir/moto.err" 2>&1 &
moto=$!
started=($moto)
for _ in $(seq 300); do grep -q "Running on" "$dir/moto.err" && break; sleep 0.2; done
rclone mkdir m:checkpoints || die "no bucket"

# ---- train, export, evaluate ----
six_keys
common=(--agents 6 --stages 2,2,2 --skip 1/3 --budget 0.1 --ahead 0 --eval-every 0 --corpus "$dir/tokens.bin"
	--batch 2 --sequence 32 --checkpoint-every 3 --checkpoint-to rclone:m:checkpoints)
six_begin run --run-dir "$dir/run" --from "$dir/hf" --iterations 6 "${common[@]}"
six_end || die "the run: $(tail -n 3 "$dir/run.err")"
started=($moto)
grep -q "the checkpoint of it6 is in the store" "$dir/run.err" || die "it6 is not in the store"
[ "$(rclone lsf -R --files-only m:checkpoints/00000006 | wc -l)" = 4 ] || die "not every file is in S3"
grep -rq "$secret" "$dir"/*.err "$dir"/*.events "$dir/run" && die "the secret was logged"
check_verify "$dir/run" 6
"$sk" export "$dir/run/checkpoints/00000000" --out "$dir/first" >/dev/null || die "export of it0"
"$sk" export "$dir/run" "$dir"/run.agent? --out "$dir/out" >/dev/null || die export
"$python" - "$dir" <<'PYTHON' || die "transformers"
import sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

work = sys.argv[1]
model = {f: AutoModelForCausalLM.from_pretrained(f"{work}/{f}", dtype=torch.float32) for f in ("hf", "first", "out")}
state = {f: m.state_dict() for f, m in model.items()}
assert all(torch.equal(t, state["first"][name]) for name, t in state["hf"].items()), "the first weights differ"
text = open(work + "/text", encoding="utf-8").read()[:2000]
tokenizer = AutoTokenizer.from_pretrained(work + "/out")
assert tokenizer.decode(tokenizer.encode(text)) == text, "the tokenizer differs"
ids = torch.tensor([tokenizer.encode(text)[:64]])
loss = {f: m(ids, labels=ids).loss.item() for f, m in model.items()}
print("losses", loss)
assert loss["out"] < loss["hf"] - 0.1, "it has not learnt"
PYTHON
"$python" -m lm_eval --model hf --model_args "pretrained=$dir/out,dtype=float32" --tasks here --include_path "$dir/tasks" \
	--device cpu --batch_size 1 --output_path "$dir/results" >"$dir/lm_eval.out" 2>&1 || { tail -n 20 "$dir/lm_eval.out"; die lm_eval; }
grep "|here" "$dir/lm_eval.out" || die "no result"

# ---- empty machines ----
rm -rf "$dir"/run.agent? "$dir"/run/checkpoints/0000000[36]/stage-*
six_begin run --resume "$dir/run" --iterations 9 --checkpoint-to rclone:m:checkpoints
six_end || die "resume: $(tail -n 3 "$dir/run.err")"
started=($moto)
check_verify "$dir/run" 6
[ "$(field restored <"$dir/verify.json")" = 3 ] || die "$(field restored <"$dir/verify.json") stages restored"
[ "$(field committed <"$dir/verify.json")" = 9 ] || die "$(field committed <"$dir/verify.json") commits"
