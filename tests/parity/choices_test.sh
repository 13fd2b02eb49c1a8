#!/bin/bash
# skippipe eval --choices computes the same losses as the transformers library and lm_eval, and the same shares as
# lm_eval's acc and acc_norm, for bytes and for a BPE tokenizer. The test is skipped if these libraries cannot be
# imported. SKIPPIPE_PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/../.."
python=${SKIPPIPE_PYTHON:-python3}
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 HF_DATASETS_OFFLINE=1 TOKENIZERS_PARALLELISM=false
"$python" -c 'import torch, transformers, tokenizers, lm_eval' 2>/dev/null || {
	echo "$python cannot import torch, transformers, tokenizers and lm_eval (SKIPPIPE_PYTHON names another)"
	exit 77
}
model=${SKIPPIPE_BUILD:-$PWD/build}/bin/skippipe-model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HF_HOME=$work/hf-home

# A text, questions about it, and a BPE tokenizer. Contexts end with and without a space. Some contexts are longer than
# the sequence, and the choices of a question have different lengths.
cat docs/*.md >"$work/text"
"$python" - "$work" <<'PYTHON'
import json, random, sys
from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast

work = sys.argv[1]
text = open(work + "/text", encoding="utf-8").read()
bpe = ByteLevelBPETokenizer()
bpe.train([work + "/text"], vocab_size=400)
PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer).save_pretrained(work + "/bpe")
random.seed(7)
with open(work + "/choices.jsonl", "w", encoding="utf-8") as f:
    for i in range(60):
        place = lambda: random.randrange(200, len(text) - 100)
        at, size = place(), random.choice((3, 20, 90))
        choices = [text[p : p + random.randrange(1, 30)] for p in (at, place(), place(), place())]
        choices = [" " + c.strip() + "x" for c in choices]
        context = text[at - size : at].strip() + "x" + (" " if i % 3 == 0 else "")
        f.write(json.dumps({"context": context, "choices": choices, "answer": i % 4}, ensure_ascii=i % 2 == 0) + "\n")
PYTHON

shape=(--set dim=48 --set n_heads=4 --set n_kv_heads=2 --set ffn_dim=96 --set n_layers=4 --set n_stages=2 --set sequence=96
	--set batch=2 --microbatches 4 --iterations 30 --validate-every 0)
for tokens in bytes bpe; do
	rm -rf "$work/start" "$work/hf"
	echo "$tokens"
	if [ $tokens = bytes ]; then
		"$model" train "${shape[@]}" --corpus "$work/text" --out "$work/start" >/dev/null
	else
		"$model" tokenize --tokenizer "$work/bpe" --corpus "$work/text" --out "$work/text.bin" >/dev/null 2>&1
		"$model" train "${shape[@]}" --set vocab=400 --tokenizer "$work/bpe" --corpus "$work/text.bin" --out "$work/start" >/dev/null
	fi
	"$model" export "$work/start" --out "$work/hf" >/dev/null
	"$model" eval "$work/start" --choices "$work/choices.jsonl" --format jsonl >"$work/ours.jsonl"
	"$python" tests/parity/choices.py "$work" 96
done
