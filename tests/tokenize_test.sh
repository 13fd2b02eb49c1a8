#!/bin/bash
# Texts, JSON lines and shards become token shards: by bytes, by a small tokenizer.json, and by a SentencePiece model
# that the test trains. The tokens must equal those of SentencePiece's own tool. A model is trained on the tokens and
# continues a text. Its tokenizer stays with it through checkpoints, export and import.
. "$(dirname "$0")/lib.sh"
export LC_ALL=C.UTF-8 # printf writes \u00e9 as UTF-8
need skippipe-model
model=$bin/skippipe-model
tokens() { od -An -v -tu2 -w2 -j1024 "$1" | tr -d ' ' | tr '\n' ' '; }
ok() { # ok WORDS COMMAND...: checks that the command succeeds and prints the words
	timeout -k 5 60 "${@:2}" >"$dir/out" 2>"$dir/ok.err" </dev/null || die "exit status $?: ${*:2}"
	grep -qE -- "$1" "$dir/out" || die "no \"$1\" in the output of: ${*:2}"
}
gives() { # gives SHARD TOKENS...: checks the tokens of a shard
	[ "$(tokens "$dir/$1")" = "${*:2} " ] || die "$1: $(tokens "$dir/$1"), expected ${*:2}"
}

# ---- bytes
printf 'a\nb' >"$dir/a.txt"
printf '{"text": "x"}\n{"more": 1, "text": "\\u00e9\\u0000"}\n' >"$dir/b.jsonl"
ok '3 tokens' "$model" tokenize --out "$dir/a.bin" --corpus "$dir/a.txt"
gives a.bin 97 10 98
expect 1 'b.jsonl: line 2, byte 28: .*NUL' "$model" tokenize --out "$dir/b.bin" --corpus "$dir/b.jsonl"
[ ! -e "$dir/b.bin" ] || die "a shard of what could not be read"
sed -i 's/\\u0000//' "$dir/b.jsonl"
ok '5 tokens' "$model" tokenize --out "$dir/b.bin" --corpus "$dir/b.jsonl"
gives b.bin 120 10 195 169 10
ok '8 tokens' "$model" tokenize --out "$dir/c.bin" --corpus "$dir/a.bin" "$dir/b.bin"
gives c.bin 97 10 98 120 10 195 169 10
expect 1 'joined with others alone' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/a.txt" "$dir/b.bin"
head -c 1026 "$dir/a.bin" >"$dir/cut.bin"
expect 1 'cut.bin: 1 tokens where its header promises 3' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/cut.bin"
printf 'text\n\nof \0 bytes' >"$dir/nul.txt"
expect 1 'nul.txt: line 3, byte 4: NUL' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/nul.txt"
expect 1 'nul.txt: not a text: byte 10 is NUL' "$model" train --corpus "$dir/nul.txt"
# nanoGPT's train.bin: tokens of 16 bits and no header
printf 'a\0b\0\0\1' >"$dir/train.bin"
expect 1 'train.bin: .*nanoGPT.*--raw' "$model" train --corpus "$dir/train.bin"
expect 1 'train.bin: .*nanoGPT.*--raw' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/train.bin"
ok '3 tokens' "$model" tokenize --raw --out "$dir/r.bin" --corpus "$dir/train.bin"
gives r.bin 97 98 256
printf 'a\0\0\0b\0' >"$dir/three.bin"
ok '3 tokens' "$model" tokenize --raw --out "$dir/r.bin" --force --corpus "$dir/three.bin"
printf 'a\0\0\0b\0\1\0' >"$dir/four.bin" # tokens of 32 bits
expect 1 'four.bin: every second token is below 4: .*32 bits' "$model" tokenize --raw --out "$dir/d.bin" --corpus "$dir/four.bin"
# Windows writes a byte order mark, CRLF and empty lines; Python writes null and half of a surrogate pair.
printf '\xef\xbb\xbf{"text": "x"}\r\n\r\n{"text": null}\r\n{"text": "y"}' >"$dir/w.jsonl"
ok '4 tokens' "$model" tokenize --out "$dir/w.bin" --corpus "$dir/w.jsonl"
gives w.bin 120 10 121 10
grep -q 'w.jsonl: 1 of 3 documents are left out: "text" is null in 1 and empty in 0, first in line 3' "$dir/ok.err" || die "$(cat "$dir/ok.err")"
printf '{"text": null}\n{"text": ""}\n' >"$dir/none.jsonl"
: >"$dir/none.txt"
expect 1 'no document has a text: nothing written' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/none.jsonl" "$dir/none.txt"
ok '3 tokens' "$model" tokenize --out "$dir/a3.bin" --corpus "$dir/none.txt" "$dir/none.jsonl" "$dir/a.txt"
grep -q 'none.txt: is empty and left out' "$dir/ok.err" && grep -q 'none.jsonl: 2 of 2 documents are left out' "$dir/ok.err" || die "$(cat "$dir/ok.err")"
for key in '{"txt": "x"}' '{"text": 3}' '["x"]'; do
	printf '{"text": "x"}\n%s\n' "$key" >"$dir/key.jsonl"
	expect 1 'key.jsonl: line 2, byte 1: expected an object with a "text"' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/key.jsonl"
done
printf '\n{"text": "x\\ud83d"}\n' >"$dir/half.jsonl"
expect 1 'half.jsonl: line 2, byte 12: half of a surrogate' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/half.jsonl"

"$model" tokenize --out "$dir/a2.bin" --corpus - <"$dir/a.txt" >/dev/null && cmp -s "$dir/a.bin" "$dir/a2.bin" ||
	die "standard input is not read"
# Without --force an existing file is kept, even if a link names it. An empty file is replaced, because nothing is lost.
ln -s a2.bin "$dir/link.bin"
ln -s target.bin "$dir/dangling.bin"
for name in a2.bin link.bin; do
	expect 1 "$name: there is a file already: .*--force" "$model" tokenize --out "$dir/$name" --corpus "$dir/b.jsonl"
done
cmp "$dir/a.bin" "$dir/a2.bin" || die "a shard is replaced without --force"
ok '5 tokens' "$model" tokenize --out "$dir/link.bin" --force --corpus "$dir/b.jsonl"
[ -L "$dir/link.bin" ] && cmp "$dir/a2.bin" "$dir/b.bin" || die "--force does not replace the target of a link"
ok '5 tokens' "$model" tokenize --out "$dir/dangling.bin" --corpus "$dir/b.jsonl"
cmp "$dir/target.bin" "$dir/b.bin" || die "the target of a dangling link is not created"
: >"$dir/new.bin"
ok '5 tokens' "$model" tokenize --out "$dir/new.bin" --corpus "$dir/b.jsonl"
ok '5 tokens' "$model" tokenize --out /dev/null --corpus "$dir/b.jsonl"
[ -c /dev/null ] || die "/dev/null is replaced"
# Outputs that cannot hold a shard. The header at the beginning of the file is written last, so the output must be
# seekable.
expect 1 "$dir: a folder, not a file" "$model" tokenize --out "$dir" --corpus "$dir/a.txt"
expect 1 '/dev/stdout: a shard begins with the number of its tokens' "$model" tokenize --out /dev/stdout --corpus "$dir/a.txt"
expect 1 '/dev/fd/3: a shard begins with the number of its tokens' bash -c '"$@" 3> >(cat)' _ "$model" tokenize --out /dev/fd/3 --corpus "$dir/a.txt"

# JSON lines with other file name endings. A file that is almost JSON lines is an error, and is never taken for plain
# text.
for name in x.JSONL x.ndjson x.json; do
	cp "$dir/b.jsonl" "$dir/$name"
	ok '5 tokens' "$model" tokenize --out "$dir/$name.bin" --corpus "$dir/$name"
	expect 1 "$name holds JSON lines" "$model" train --corpus "$dir/$name"
done
printf '[\n {"text": "x"}\n]\n' >"$dir/array.json"
expect 1 'array.json: a JSON array: .*each line' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/array.json"
expect 1 "$dir: a folder, not a file" "$model" tokenize --out "$dir/d.bin" --corpus "$dir"
gzip -c "$0" >"$dir/text.gz"
expect 1 'text.gz: is compressed with gzip: unpack' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/text.gz"
expect 1 'text.gz: is compressed with gzip: unpack' "$model" train --corpus "$dir/text.gz"
cp "$dir/text.gz" "$dir/packed.jsonl"
expect 1 'packed.jsonl: is compressed with gzip' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/packed.jsonl"
# Git leaves a small pointer where a large file was not fetched. Without a check, the pointer would be read as a text.
for name in pointer.txt pointer.jsonl pointer.bin pointer.json pointer.model; do
	printf 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n' >"$dir/$name"
done
for name in pointer.txt pointer.jsonl pointer.bin; do
	expect 1 "$name: is a Git LFS pointer" "$model" tokenize --out "$dir/d.bin" --corpus "$dir/$name"
	expect 1 "$name: is a Git LFS pointer" "$model" train --corpus "$dir/$name"
done
for name in pointer.json pointer.model; do
	expect 1 "$name: is a Git LFS pointer" "$model" tokenize --tokenizer "$dir/$name" --out "$dir/d.bin" --corpus "$dir/a.txt"
done
# A byte order mark at the beginning of a text is no part of the text.
{ printf '\xef\xbb\xbf'; cat "$dir/a.txt"; } >"$dir/mark.txt"
ok '3 tokens' "$model" tokenize --out "$dir/mark.bin" --corpus "$dir/mark.txt"
gives mark.bin 97 10 98
printf '\xef\xbb\xbf' >"$dir/only.txt"
expect 1 'only.txt: is empty' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/only.txt"
# --raw would otherwise have no effect on other files, and their bytes would become tokens.
cp "$dir/train.bin" "$dir/train.u16"
expect 1 'train.u16: --raw reads tokens from files named .bin' "$model" tokenize --raw --out "$dir/d.bin" --corpus "$dir/train.u16"
{ cat "$dir/a.bin" && echo; } >"$dir/long.bin"
expect 1 'long.bin: too long: ' "$model" train --corpus "$dir/long.bin"

# ---- byte-level BPE: the letters of "low", their merges and a space
cat >"$dir/tokenizer.json" <<'JSON'
{"added_tokens": [{"id": 6, "content": "<|endoftext|>", "special": true}], "normalizer": null,
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"},
 "model": {"type": "BPE", "vocab": {"l": 0, "o": 1, "w": 2, "Ġ": 3, "lo": 4, "Ġlo": 5}, "merges": ["l o", "Ġ lo"]}}
JSON
printf 'low low' >"$dir/low.txt"
ok '5 tokens' "$model" tokenize --tokenizer "$dir" --out "$dir/low.bin" --corpus "$dir/low.txt"
gives low.bin 6 4 2 5 2
printf 'low\nlow high' >"$dir/high.txt"
expect 1 'high.txt: line 1, byte 4: no token for the byte 0x0a' "$model" tokenize --tokenizer "$dir" --out "$dir/d.bin" --corpus "$dir/high.txt"
# An added token lies beyond the first block of the text. The bytes inside an added token need no tokens of their own.
{ yes 'low low' | head -n 9000 | tr '\n' ' '; printf 'low<|endoftext|>low h'; } >"$dir/far.txt"
expect 1 'far.txt: line 1, byte 72021: no token for the byte 0x68' "$model" tokenize --tokenizer "$dir" --out "$dir/d.bin" --corpus "$dir/far.txt"
printf '{"text": "low"}\n{"text": "lo\\u006bl"}\n' >"$dir/high.jsonl"
expect 1 'high.jsonl: line 2: no token for the byte 0x6b' "$model" tokenize --tokenizer "$dir" --out "$dir/d.bin" --corpus "$dir/high.jsonl"
printf 'low\nlow \xff' >"$dir/latin.txt"
expect 1 'latin.txt: line 2, byte 5: not UTF-8 .*iconv' "$model" tokenize --tokenizer "$dir" --out "$dir/d.bin" --corpus "$dir/latin.txt"
sed 's/"normalizer": null/"normalizer": {"type": "Lowercase"}/' "$dir/tokenizer.json" >"$dir/lower.json"
expect 1 'lower.json: normalizer: "Lowercase"' "$model" tokenize --tokenizer "$dir/lower.json" --out "$dir/d.bin" --corpus "$dir/low.txt"
# Files that are no tokenizer: the message says what is wrong with them.
mkdir "$dir/empty"
: >"$dir/empty/tokenizer.json"
expect 1 'empty/tokenizer.json: the file is empty' "$model" tokenize --tokenizer "$dir/empty" --out "$dir/d.bin" --corpus "$dir/low.txt"
printf 'IQ== 0\nIg== 1\n' >"$dir/llama3.model"
expect 1 'llama3.model: a file of tiktoken.*tokenizer.json' "$model" tokenize --tokenizer "$dir/llama3.model" --out "$dir/d.bin" --corpus "$dir/low.txt"
tail -c 200 "$dir/tokenizer.json" >"$dir/tail.json"
expect 1 'tail.json: not JSON' "$model" tokenize --tokenizer "$dir/tail.json" --out "$dir/d.bin" --corpus "$dir/low.txt"
head -c 200 "$dir/tokenizer.json" >"$dir/head.json"
expect 1 'head.json: line 3: premature end' "$model" tokenize --tokenizer "$dir/head.json" --out "$dir/d.bin" --corpus "$dir/low.txt"
# White space and a byte order mark, as some editors write them, are ignored.
for before in ' \n' '\xef\xbb\xbf'; do
	{ printf "$before"; cat "$dir/tokenizer.json"; } >"$dir/blank.json"
	ok '5 tokens' "$model" tokenize --tokenizer "$dir/blank.json" --out "$dir/low.bin" --force --corpus "$dir/low.txt"
done
# Ids above 65535 need 32 bits.
sed 's/"w": 2/"w": 70000/' "$dir/tokenizer.json" >"$dir/wide.json"
ok '5 tokens' "$model" tokenize --tokenizer "$dir/wide.json" --out "$dir/wide.bin" --corpus "$dir/low.txt"
[ "$(od -An -v -td4 -w4 -j1024 "$dir/wide.bin" | tr -d ' ' | tr '\n' ' ')" = '6 4 70000 5 70000 ' ] || die "wide.bin is not of 32 bits"
expect 1 'tokens of 32 bits' "$model" tokenize --out "$dir/d.bin" --corpus "$dir/low.bin" "$dir/wide.bin"
yes 'low low' | head -n 400 | tr '\n' ' ' >"$dir/lows.txt"
# A tokenizer of single bytes, as export writes it. A model with this tokenizer accepts plain text as its corpus.
vocab=$(for b in {0..255}; do
	c=$((b < 33 ? b + 256 : b < 127 ? b : b < 161 ? b + 162 : b == 173 ? 323 : b))
	printf '"\\u%04x": %d, ' $c $b
done)
echo '{"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}, "decoder": {"type": "ByteLevel"},
	"model": {"type": "BPE", "merges": [], "vocab": {'"${vocab%, }"'}}}' >"$dir/bytes.json"
ok '3 tokens' "$model" tokenize --tokenizer "$dir/bytes.json" --out "$dir/e.bin" --corpus "$dir/a.txt"
cmp "$dir/a.bin" "$dir/e.bin" || die "other tokens than bytes"
ok parameters "$model" train --set dim=24 --set n_layers=6 --set sequence=16 --tokenizer "$dir/bytes.json" --corpus "$dir/lows.txt" --iterations 1 \
	--microbatches 1 --out "$dir/bytes"
ok loss "$model" eval "$dir/bytes" --corpus "$dir/lows.txt" --batches 1
ok . "$model" generate "$dir/bytes" --tokens 5
# The tokenizer stays with the model.
ok tokens "$model" tokenize --tokenizer "$dir" --out "$dir/lows.bin" --corpus "$dir/lows.txt"
small=(--set vocab=7 --set dim=16 --set n_heads=2 --set n_kv_heads=1 --set ffn_dim=32 --set sequence=32)
ok parameters "$model" train "${small[@]}" --tokenizer "$dir/tokenizer.json" --corpus "$dir/lows.bin" --iterations 2 --microbatches 2 --out "$dir/lows"
expect 1 'the corpus is text.*skippipe tokenize' "$model" eval "$dir/lows" --corpus "$dir/lows.txt"
expect 1 'the corpus is text.*skippipe tokenize' "$model" train --from "$dir/lows" --corpus "$dir/lows.txt"
cp -r "$dir/lows" "$dir/more"
sed 's/"special": true}\]/"special": true}, {"id": 7, "content": "[PAD]", "special": true}]/' "$dir/tokenizer.json" >"$dir/more/tokenizer.json"
expect 1 "the model's vocab is 7, .*more has 8 tokens; some have no weights" "$model" generate "$dir/more"
ok parameters "$model" train --from "$dir/lows" --corpus "$dir/lows.bin" --iterations 3 --microbatches 2 --out "$dir/lows2"
ok written "$model" export "$dir/lows2" --out "$dir/lows-hf"
ok checkpoint "$model" import "$dir/lows-hf" --set n_stages=2 --out "$dir/lows3"
cmp "$dir/tokenizer.json" "$dir/lows3/tokenizer.json" || die "the tokenizer has changed on its way"
ok loss "$model" eval "$dir/lows3" --corpus "$dir/lows.bin" --batches 1
ok '^low[low ]*$' "$model" generate "$dir/lows3" --prompt low --tokens 300
# Generation ends at the token that ends a document. If no file of the model names this token, it is the token that
# begins a document. --ignore-eos makes generation continue.
length() { "$model" generate "$dir/$1" --prompt low --temperature 0 --tokens 40 "${@:2}" >"$dir/out" || die "generate"; wc -c <"$dir/out"; }
next=$(printf low | "$model" generate "$dir/lows-hf" --prompt low --temperature 0 --tokens 1)
all=$(length lows-hf --ignore-eos)
case "$next" in lowlo) token=4 ;; loww) token=2 ;; lowl) token=0 ;; lowo) token=1 ;; 'low ') token=3 ;; 'low lo') token=5 ;; *) token=6 ;; esac
for value in $token "[6, $token]"; do
	echo "{\"eos_token_id\": $value}" >"$dir/lows-hf/generation_config.json"
	[ "$(length lows-hf)" = 4 ] || die "no end at the token $value: $(cat "$dir/out")"
	[ "$(length lows-hf --ignore-eos)" = "$all" ] || die "an end with --ignore-eos"
	rm -rf "$dir/ends"*
	ok checkpoint "$model" import "$dir/lows-hf" --set n_stages=2 --out "$dir/ends"
	[ "$(length ends)" = 4 ] || die "no end after import: $(cat "$dir/out")"
	(umask 022 && "$model" export "$dir/ends" --out "$dir/ends-hf") >/dev/null || die "export"
	tr -d ' \n' <"$dir/ends-hf/config.json" | grep -qF "\"eos_token_id\":${value// /}" || die "config.json of the export: $(cat "$dir/ends-hf/config.json")"
	[ "$(stat -c %a "$dir/ends-hf") $(stat -c %a "$dir/ends-hf/config.json")" = '755 644' ] || die "modes: $(ls -la "$dir/ends-hf")"
	rm "$dir/ends-hf/generation_config.json"
	[ "$(length ends-hf)" = 4 ] || die "config.json names no end: $(cat "$dir/out")"
done
echo '{"eos_token_id": "</s>"}' >"$dir/lows-hf/generation_config.json"
expect 1 'generation_config.json: eos_token_id: expected' "$model" generate "$dir/lows-hf"
echo '{"suppress_tokens": [1]}' >"$dir/lows-hf/generation_config.json"
expect 1 'generation_config.json: suppress_tokens: not supported' "$model" generate "$dir/lows-hf"
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
spm_train --input="$dir/text" --model_prefix="$dir/p" --vocab_size=600 --byte_fallback=true --normalization_rule_name=identity \
	--remove_extra_whitespaces=false --num_threads=1 >"$dir/spm.log" 2>&1 || die "spm_train: $(tail -n 3 "$dir/spm.log")"
line='It was the best of times; caf\u00e9s \ud83d\ude00 too'
printf '{"text": "%s"}\n' "$line" >"$dir/one.jsonl"
ok tokens "$model" tokenize --tokenizer "$dir/p.model" --out "$dir/one.bin" --corpus "$dir/one.jsonl"
ids=$(printf "$(echo "$line" | sed 's/\\ud83d\\ude00/\\U1f600/')\n" | spm_encode --model="$dir/p.model" --output_format=id 2>/dev/null)
gives one.bin 1 $ids
ok tokens "$model" tokenize --tokenizer "$dir/p.model" --out "$dir/text.bin" --corpus "$dir/text"
# skippipe encodes a long text in parts, and a document of JSON lines as a whole. Both must give the same pieces. (A
# unigram model could give others, because the library's sums have too few digits for a long document.)
spm_train --input="$dir/text" --model_prefix="$dir/b" --vocab_size=400 --model_type=bpe --num_threads=1 >"$dir/spm.log" 2>&1 ||
	die "spm_train: $(tail -n 3 "$dir/spm.log")"
cat /usr/share/games/fortunes/{literature,science,wisdom} >"$dir/long"
sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/\\t/g; s/\r/\\r/g; s/\x08/\\b/g' "$dir/long" | sed ':a; N; $!ba; s/\n/\\n/g; s/^/{"text": "/; s/$/\\n"}/' >"$dir/long.jsonl"
ok tokens "$model" tokenize --tokenizer "$dir/b.model" --out "$dir/parts.bin" --corpus "$dir/long"
ok tokens "$model" tokenize --tokenizer "$dir/b.model" --out "$dir/whole.bin" --corpus "$dir/long.jsonl"
cmp "$dir/parts.bin" "$dir/whole.bin" || die "a cut has changed the pieces"
[ "$(stat -c %s "$dir/text.bin")" -lt $(($(stat -c %s "$dir/text") * 3 / 2)) ] || die "as many pieces as bytes"
small=(--set vocab=600 --set dim=16 --set n_heads=2 --set n_kv_heads=1 --set ffn_dim=32 --set sequence=32)
ok parameters "$model" train "${small[@]}" --corpus "$dir/text.bin" --iterations 2 --microbatches 2 --out "$dir/ck"
expect 1 'vocab is 600' "$model" generate "$dir/ck" --tokens 5
ok 'Once upon' "$model" generate "$dir/ck" --tokenizer "$dir/p.model" --prompt 'Once upon' --tokens 300
iconv -f utf-8 -t utf-8 "$dir/out" >/dev/null || die "pieces gave no text"
