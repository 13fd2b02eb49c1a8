#!/bin/bash
# Texts, JSON lines and shards become token shards, by bytes and by a SentencePiece model that the test trains. The
# tokens are compared with those of SentencePiece's own tool. A model is trained on them and continues a text.
. "$(dirname "$0")/lib.sh"
need skippipe-model
model=$bin/skippipe-model
tokens() { od -An -v -tu2 -w2 -j1024 "$1" | tr -d ' ' | tr '\n' ' '; }
ok() { # ok WORDS COMMAND...: the command must succeed and print the words
	timeout -k 5 60 "${@:2}" >"$dir/out" 2>"$dir/ok.err" </dev/null || die "exit status $?: ${*:2}"
	grep -qE -- "$1" "$dir/out" || die "no \"$1\" in the output of: ${*:2}"
}
gives() { # gives SHARD TOKENS...
	[ "$(tokens "$dir/$1")" = "${*:2} " ] || die "$1: $(tokens "$dir/$1"), expected ${*:2}"
}

# ---- bytes
printf 'a\nb' >"$dir/a.txt"
printf '{"text": "x"}\n{"more": 1, "text": "\\u00e9\\u0000"}\n' >"$dir/b.jsonl"
ok '3 tokens' "$model" tokenize --out "$dir/a.bin" --corpus "$dir/a.txt"
gives a.bin 97 10 98
expect 1 'b.jsonl: line 2: .*text' "$model" tokenize --out "$dir/b.bin" --corpus "$dir/b.jsonl"
[ ! -e "$dir/b.bin" ] || die "a shard of what could not be read"
sed -i 's/\\u0000//' "$dir/b.jsonl"
ok '5 tokens' "$model" tokenize --out "$dir/b.bin" --corpus "$dir/b.jsonl"
gives b.bin 120 10 195 169 10
ok '8 tokens' "$model" tokenize --out "$dir/c.bin" --corpus "$dir/a.bin" "$dir/b.bin"
gives c.bin 97 10 98 120 10 195 169 10
expect 1 'joined with others alone' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/a.txt" "$dir/b.bin"
head -c 1026 "$dir/a.bin" >"$dir/cut.bin"
expect 1 'cut.bin: 1 tokens where its header promises 3' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/cut.bin"
echo '{"version": "1.0"}' >"$dir/tokenizer.json"
expect 1 'tokenizer.json: only SentencePiece' "$model" tokenize --tokenizer "$dir/tokenizer.json" --out "$dir/d.bin" --corpus "$dir/a.txt"
[ "$(find "$dir" -name 'd.bin*' | wc -l)" = 0 ] || die "something is left of a shard that failed"

# ---- SentencePiece
echo garbage >"$dir/bad.model"
rc=0
"$model" tokenize --tokenizer "$dir/bad.model" --out "$dir/d.bin" --corpus "$dir/a.txt" >"$dir/out" 2>&1 || rc=$?
[ $rc = 1 ] || die "a broken model: exit status $rc"
if grep -q 'built without SentencePiece' "$dir/out"; then
	echo "built without SentencePiece: its part was left out"
	exit 77
fi
grep -q 'bad.model: no SentencePiece model' "$dir/out" || die "$(cat "$dir/out")"
command -v spm_train >/dev/null || { echo "no spm_train (package sentencepiece): that part was left out"; exit 77; }
[ -e /usr/share/games/fortunes/literature ] || { echo "no fortunes to train on"; exit 77; }
cat /usr/share/games/fortunes/{literature,science,wisdom} | grep -v '^%$' >"$dir/text"
spm_train --input="$dir/text" --model_prefix="$dir/p" --vocab_size=400 --byte_fallback=true --normalization_rule_name=identity \
	--remove_extra_whitespaces=false --num_threads=1 >"$dir/spm.log" 2>&1 || die "spm_train: $(tail -n 3 "$dir/spm.log")"
line='It was the best of times; caf\u00e9s \ud83d\ude00 too'
printf '{"text": "%s"}\n' "$line" >"$dir/one.jsonl"
ok tokens "$model" tokenize --tokenizer "$dir/p.model" --out "$dir/one.bin" --corpus "$dir/one.jsonl"
ids=$(printf "$(echo "$line" | sed 's/\\ud83d\\ude00/\\U1f600/')\n" | spm_encode --model="$dir/p.model" --output_format=id 2>/dev/null)
gives one.bin 1 $ids
ok tokens "$model" tokenize --tokenizer "$dir/p.model" --out "$dir/text.bin" --corpus "$dir/text"
[ "$(stat -c %s "$dir/text.bin")" -lt $(($(stat -c %s "$dir/text") * 3 / 2)) ] || die "as many pieces as bytes"
small=(--set vocab=400 --set dim=16 --set n_heads=2 --set n_kv_heads=1 --set ffn_dim=32 --set sequence=32)
ok parameters "$model" train "${small[@]}" --corpus "$dir/text.bin" --iterations 2 --microbatches 2 --out "$dir/ck"
expect 1 'vocab is 400' "$model" generate "$dir/ck" --tokens 5
ok 'Once upon' "$model" generate "$dir/ck" --tokenizer "$dir/p.model" --prompt 'Once upon' --tokens 300
iconv -f utf-8 -t utf-8 "$dir/out" >/dev/null || die "pieces gave no text"
