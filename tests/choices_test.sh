#!/bin/bash
# A model that has learnt a text finds the text's continuations among other continuations (eval --choices). A
# context that is too long loses its beginning. The seed alone determines random stages. Errors name file and line.
. "$(dirname "$0")/lib.sh"
need skippipe-model
model=$bin/skippipe-model
yes 'low lower lowest' | head -n 600 >"$dir/text"
"$model" train --set dim=24 --set n_layers=6 --set sequence=32 --corpus "$dir/text" --iterations 30 --microbatches 2 \
	--out "$dir/model" >/dev/null || die "train"
choices() { # choices FILE OPTION...: answers the questions of the file
	"$model" eval "$dir/model" --choices "$dir/$1" "${@:2}" 2>"$dir/eval.err" || die "eval $*: $(cat "$dir/eval.err")"
}
losses() { sed -n 's/.*"event":"choice".*"losses":\[\([^]]*\)\].*/\1/p'; } # prints the losses of each question

# ---- ten questions. The answers of the last two are wrong.
for i in {1..10}; do
	echo '{"context": "lowest\nlow lower", "choices": [" xzq", " lowest\nlow", "w"], "answer": '$((i > 8 ? 0 : 1))'}'
	[ $i != 4 ] || echo
done >"$dir/ten.jsonl"
choices ten.jsonl >"$dir/out"
# Wilson's interval for 8 right answers of 10 is 0.490 to 0.943, as in published tables. If losses were not divided by
# the number of tokens, the short choice would win.
grep -qE '^nothing omitted +right 0.0% \(0.0 to 27.8\)  per token 80.0% \(49.0 to 94.3\) +chance 33.3% +questions 10$' "$dir/out" || die "$(cat "$dir/out")"
choices ten.jsonl --format jsonl >"$dir/out"
[ "$(grep -c '"event":"choice"' "$dir/out")" = 10 ] || die "not a line for each question"
grep '"line":11,' "$dir/out" | grep -q '"answer":0,.*"chosen_per_token":1,"losses":\[.*\],"tokens":\[4,11,1\]' || die "$(cat "$dir/out")"
tail -n 1 "$dir/out" | grep -q '"questions":10,"chance":0.333333,.*"accuracy_per_token":0.800000,"low_per_token":0.490162,"high_per_token":0.943318}' ||
	die "$(tail -n 1 "$dir/out")"

# The loss of a choice must be the sum of two losses: the loss of its first part, and the loss of its second part in the
# context of the first.
cat >"$dir/chain.jsonl" <<'END'
{"context": "low", "choices": [" lower", " lo"], "answer": 0}
{"context": "low lo", "choices": ["wer", "x"], "answer": 0}
END
choices chain.jsonl --format jsonl | losses | tr ',\n' '  ' >"$dir/out"
awk '{ if ($1 > 0 && $2 > 0 && $3 > 0 && $1 - $2 - $3 < 1e-4 && $2 + $3 - $1 < 1e-4) ok = 1 } END { exit !ok }' "$dir/out" ||
	die "the parts of a choice do not add up: $(cat "$dir/out")"

# ---- stages that are skipped
choices ten.jsonl --omit-fraction 0.4 --always 0,5 --format jsonl >"$dir/half"
choices ten.jsonl --omit-fraction 0.4 --always 0,5 --format jsonl >"$dir/half.again"
cmp "$dir/half" "$dir/half.again" || die "the same seed skips other stages"
[ "$(losses <"$dir/half" | sort -u | wc -l)" -gt 2 ] || die "every question skips the same stages"
choices ten.jsonl --omit-fraction 0.4 --always 0,5 --format jsonl --seed 2 | cmp -s - "$dir/half" && die "another seed skips the same stages"
choices ten.jsonl --table --format jsonl | grep '"omitted":"all after stage 1"' >"$dir/after"
choices ten.jsonl --exit-after 1 --format jsonl | sed 's/"as asked"/"all after stage 1"/' | cmp - "$dir/after" || die "--table differs from --exit-after"

# ---- a context that is too long. A sequence of 32 tokens and their targets has 33 tokens. The choice takes 11, so 22
# of the context's 40 tokens fit.
context=$(head -c 40 "$dir/text" | tr '\n' ' ' | sed 's/ *$//')
echo '{"context": "'"$context"'", "choices": [" lowest low", "x"], "answer": 0}' >"$dir/long.jsonl"
echo '{"context": "'"${context: -22}"'", "choices": [" lowest low", "x"], "answer": 0}' >"$dir/short.jsonl"
long=$(choices long.jsonl --format jsonl | losses) short=$(choices short.jsonl --format jsonl | losses)
[ -n "$long" ] && [ "${long%,*}" = "${short%,*}" ] || die "a context is not cut from the left: $long, $short"

# ---- errors
{ echo; cat "$dir/short.jsonl"; echo '{"context": "a", "choices": ["b"], "answer": 0}'; } >"$dir/bad.jsonl"
expect 1 "$dir/bad.jsonl: line 3: expected \"choices\" to be a list of 2 to 32 texts" "$model" eval "$dir/model" --choices "$dir/bad.jsonl"
echo '{"context": "a", "choices": ["b", "'"$(head -c 33 "$dir/text" | tr '\n' ' ')"'"], "answer": 0}' >"$dir/wide.jsonl"
expect 1 'wide.jsonl: line 1: choice 1 has 33 tokens, more than the model.s sequence of 32' "$model" eval "$dir/model" --choices "$dir/wide.jsonl"
echo >"$dir/empty.jsonl"
expect 1 'empty.jsonl has no questions' "$model" eval "$dir/model" --choices "$dir/empty.jsonl"
expect 1 'none.jsonl: No such file' "$model" eval "$dir/model" --choices "$dir/none.jsonl"
expect 1 'choices excludes --corpus' "$model" eval "$dir/model" --choices "$dir/ten.jsonl" --corpus "$dir/text"
echo "choices: ten questions, whole and with stages skipped"
