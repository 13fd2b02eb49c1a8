#!/bin/bash
# Whole programs import models of other tools: with any number of stages, padded vocabularies, and errors that name
# file, key and remedy. model/tests/huggingface_test.c tests the rules for keys and tensors.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-model
sk=$bin/skippipe
small=(--iterations 0 --batches 0 --set dim=32 --set n_heads=4 --set n_kv_heads=2 --set ffn_dim=48)
model() { # model NAME SETTING...: a model in the format of transformers
	local name=$1
	shift
	"$sk" train "${small[@]}" "$@" --out "$dir/$name.made" >/dev/null || die "$name is not made"
	"$sk" export "$dir/$name.made" --out "$dir/$name" >/dev/null || die "$name is not exported"
}

# ---- the number of stages
for layers in 1 2 4; do
	model "l$layers" --set n_layers=$layers --set n_stages=1
	"$sk" import "$dir/l$layers" --out "$dir/l$layers.start" >"$dir/out" || die "$layers layers are not imported"
	grep -q " in $layers stages" "$dir/out" || die "$layers layers: $(cat "$dir/out")"
done
model l20 --set n_layers=20 --set n_stages=1
"$sk" import "$dir/l20" --out "$dir/l20.start" >"$dir/out" || die "20 layers are not imported"
grep -q " in 6 stages" "$dir/out" || die "20 layers: $(cat "$dir/out")"
"$sk" import "$dir/l20" --set n_stages=21 --out "$dir/l20.many" >"$dir/out" || die "21 stages are refused"
grep -q " in 21 stages" "$dir/out" || die "21 stages: $(cat "$dir/out")"
expect 1 "n_stages=4: $dir/l2/config.json: num_hidden_layers is 2: choose at most 3" \
	"$sk" import "$dir/l2" --set n_stages=4 --out "$dir/none"
expect 1 "the model is that of $dir/l2/config.json" "$sk" import "$dir/l2" --set dim=96 --out "$dir/none"
expect 1 'n_stages=0: expected 1 or more' "$sk" import "$dir/l2" --set n_stages=0 --out "$dir/none"

# ---- a short context: the default recipe adapts to it, a recipe that was chosen is refused
model short --set n_layers=2 --set n_stages=1 --set context=32 --set sequence=16
"$sk" import "$dir/short" --set n_stages=2 --out "$dir/short.start" >/dev/null || die "a short context is not imported"
expect 1 'sequence is 64, longer than the context 32' "$sk" import "$dir/short" --set sequence=64 --out "$dir/none"

# ---- vocabularies
model padded --set n_layers=2 --set n_stages=1 --set vocab=320
"$sk" generate "$dir/padded" --prompt ab --tokens 300 --temperature 100 --top-p 1 >"$dir/out" ||
	die "a padded vocabulary is refused, or a row above the tokenizer is drawn"
yes 'plain text' | head -c 20000 >"$dir/text"
"$sk" tokenize --corpus "$dir/text" --out "$dir/text.bin" >/dev/null || die "tokenize"
model narrow --set n_layers=2 --set n_stages=1 --set vocab=200 --corpus "$dir/text.bin"
expect 1 "vocab is 200, text in bytes has 256 tokens" "$sk" generate "$dir/narrow"
model large --set n_layers=2 --set n_stages=1 --set vocab=5000
expect 1 "vocab is 5000, text in bytes has 256 tokens; --tokenizer" "$sk" generate "$dir/large"

# ---- scaled positions: import, training and export keep them
sed -i 's/"rope_parameters": {/"rope_scaling": {"rope_type": "linear", "factor": 4}, &/; s/"rope_type": "default",/"rope_type": "linear", "factor": 4.0,/' \
	"$dir/l2/config.json"
"$sk" import "$dir/l2" --out "$dir/scaled" >/dev/null || die "scaled positions are refused"
grep -q '"rope_factor": 4.0' "$dir/scaled/manifest.json" || die "a checkpoint loses the scaling"
"$sk" train --from "$dir/scaled" --iterations 1 --microbatches 1 --batches 1 --out "$dir/trained" >/dev/null || die "train"
"$sk" export "$dir/trained" --out "$dir/again" >/dev/null || die "export"
[ "$(grep -c '"factor": 4.0' "$dir/again/config.json")" = 2 ] || die "an exported model loses the scaling"

# ---- the small files beside a model, and the tokens that begin and end a text
sed -i 's/"bos_token_id": null/"bos_token_id": 3/; s/"eos_token_id": null/"eos_token_id": [4, 5]/' "$dir/l4/config.json"
echo template >"$dir/l4/chat_template.jinja"
rm "$dir/l4/generation_config.json" # many models name these tokens only in config.json
"$sk" import "$dir/l4" --out "$dir/small" >/dev/null || die "import"
cmp -s "$dir/l4/chat_template.jinja" "$dir/small/chat_template.jinja" || die "import loses the template"
tr -d ' \n' <"$dir/small/generation_config.json" | grep -q '{"bos_token_id":3,"eos_token_id":\[4,5\]}' ||
	die "generation_config.json: $(cat "$dir/small/generation_config.json")"
echo '{"eos_token_id": 7}' >"$dir/l4/generation_config.json"
"$sk" import "$dir/l4" --out "$dir/small" --force >/dev/null || die "import"
cmp -s "$dir/l4/generation_config.json" "$dir/small/generation_config.json" || die "another generation_config.json"

"$sk" train --from "$dir/small" --iterations 1 --microbatches 1 --batches 1 --out "$dir/further" >/dev/null || die "train"
cmp -s "$dir/l4/chat_template.jinja" "$dir/further/chat_template.jinja" || die "training loses the template"

# ---- errors
cp -r "$dir/l4" "$dir/unread"
rm "$dir/unread/tokenizer.json" && mkdir "$dir/unread/tokenizer.json"
expect 1 'unread/tokenizer.json: a folder, not a file' "$sk" import "$dir/unread" --out "$dir/none"
cp -r "$dir/l4" "$dir/bad"
sed -i 's/"hidden_size": 32/"hidden_size": "32"/' "$dir/bad/config.json"
expect 1 "$dir/bad/config.json: hidden_size is \"32\", expected a whole number" "$sk" import "$dir/bad" --out "$dir/none"
expect 1 "$dir/bad/config.json: hidden_size is \"32\"" "$sk" eval "$dir/bad"
cp "$dir/l4/config.json" "$dir/bad/config.json"
cp "$dir/bad/model.safetensors" "$dir/bad/old.safetensors"
expect 1 "tensor .* is in $dir/bad/model.safetensors and in $dir/bad/old.safetensors: remove" \
	"$sk" import "$dir/bad" --out "$dir/none"
rm "$dir/bad/"*.safetensors
# The tensors have the names of another tool.
LC_ALL=C sed 's/"model\.layers\./"_orig.layers./g; s/"model\./"_orig./g' "$dir/l4/model.safetensors" >"$dir/bad/model.safetensors"
expect 1 "$dir/bad: tensor model.embed_tokens.weight is missing; there are [0-9]* others, such as _orig.embed_tokens.weight" \
	"$sk" import "$dir/bad" --out "$dir/none"
rm "$dir/bad/"*.safetensors
expect 1 "$dir/bad: no \*.safetensors file" "$sk" import "$dir/bad" --out "$dir/none"
[ ! -e "$dir/none" ] || die "something was written in spite of an error"
echo "foreign models: imported or refused by name"
