#!/bin/bash
# Mistakes of users and faults of disks. Each gets a clear message and the right exit status. No program crashes, and no
# incomplete file is left.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-plan skippipe-verify
sk=$bin/skippipe
for who in controller agent stranger; do
	"$sk" keygen "$dir/$who.key" >"$dir/$who.pub" || die "keygen"
done
"$sk" admit "$dir/admitted" "$(cat "$dir/agent.pub")" --role agent --name a || die "admit"
controller=("$sk" controller --key "$dir/controller.key" --admitted "$dir/admitted" --gather-s 1)

# ---- the command line
expect 2 'did you mean "verify"' "$sk" verfy
expect 2 'no verb' "$sk" zebra
expect 2 'folder of a run is missing' "$sk" verify
expect 2 '--from: expected a whole number' "$sk" verify "$dir" --from zero
expect 2 'needs a value' "$sk" demo --agents
expect 2 'adds up to 9' "$sk" demo --agents 20 --stages 3,3,3
expect 2 'and stage 0 cannot be skipped' "$sk" demo --skip 6/6
expect 2 'text or jsonl|not one of' "$sk" demo --headless --format xml
expect 2 '--frobnicate' "$sk" demo --frobnicate
expect 2 'usage' "$sk" plan
expect 1 'nosuchfile: No such file' "$sk" fleet status nosuchfile

# ---- descriptions of clusters and plans
cat >"$dir/good.json" <<'END'
{"format": "skippipe.cluster/1", "name": "two", "stages": [1, 1],
 "nodes": [{"id": 0, "location": "a", "forward_s": 1, "backward_s": 2, "loss_s": 0.1, "memory": 2},
           {"id": 1, "location": "b", "forward_s": 1, "backward_s": 2, "loss_s": 0.1, "memory": 2}],
 "delay_s": [[0, 1], [1, 0]], "microbatches_per_data_node": 2}
END
"$sk" plan "$dir/good.json" --skip 0 --budget 0.05 -o "$dir/good.plan" >/dev/null 2>&1 || die "the good cluster is refused"
"$sk" simulate "$dir/good.json" "$dir/good.plan" >/dev/null || die "the good plan is refused"
for file in json plan; do # files with a byte order mark, as some editors write them
	{ printf '\357\273\277' && cat "$dir/good.$file"; } >"$dir/marked.$file"
done
"$sk" simulate "$dir/marked.json" "$dir/marked.plan" >/dev/null || die "files with a byte order mark are refused"
expect 2 '--skip 0/5: the cluster has 2 stages' "$sk" plan "$dir/good.json" --skip 0/5
expect 2 '--sync-limit: only with --assignment free' "$sk" plan "$dir/good.json" --sync-limit 5
for limit in 0 -1 nan 5s; do
	expect 2 '--sync-limit: expected seconds' "$sk" plan "$dir/good.json" --assignment free --sync-limit "$limit"
done
expect 2 'need --iterations' "$sk" plan "$dir/good.json" --skip-schedule 1,0
expect 2 '--format need' "$sk" plan "$dir/good.json" --iterations 10
expect 2 'phase 1 of the skip schedule: expected 0 to 1' "$sk" plan "$dir/good.json" --skip-schedule 2,0 --iterations 10
expect 2 '--recipe quick: expected speed' "$sk" plan "schedule/tests/data/shipped20.json" --recipe quick --iterations 10
expect 2 'it needs a stage between' "$sk" plan "$dir/good.json" --recipe speed --iterations 10
expect 2 'exclude each other' "$sk" plan "$dir/good.json" --recipe speed --skip-schedule 0 --iterations 10
for option in '--skip 1' '--from x' '--algorithm cbs'; do
	expect 2 'exclude --skip' "$sk" plan "$dir/good.json" --skip-schedule 1,0 --iterations 10 $option
done
"$sk" plan "$dir/good.json" --skip-schedule 1,0 --iterations 10 --evaluations 50 -o "$dir/phases" || die "the good schedule is refused"
grep -q '"format":"skippipe.phases/1"' "$dir/phases" || die "the plans of a run are not written"
echo '{"format": "skippipe.fleet/1", "name": "x", "machines": [{"name": "a", "place": "Iowa", "device": "H100"}]}' >"$dir/x.plan.json"
expect 1 'the plan of -o .*x.plan.json: this file is an input' "$sk" plan --fleet "$dir/x.plan.json" --model tiny -o "$dir/x.json"
for verb in "plan $dir/good.json" "simulate $dir/good.json $dir/good.plan"; do
	expect 2 '--wire: expected fp32, bf16' "$sk" $verb --wire q4
	expect 2 '--sum-wire: expected fp32, q8' "$sk" $verb --sum-wire bf16
	expect 1 'good.json: delay_s: only fp32 activations' "$sk" $verb --wire q6
done
bad() { # bad NAME SED-EXPRESSION WORDS: the good cluster with one mistake must be refused with these words
	sed "$2" "$dir/good.json" >"$dir/$1.json"
	cmp -s "$dir/good.json" "$dir/$1.json" && die "$1: nothing was changed"
	expect 1 "$1.json.*($3)" "$sk" plan "$dir/$1.json"
}
bad cut '$d' 'line|end'
bad stranger 's/"name"/"nmae"/' 'nmae'
bad version 's,cluster/1,cluster/9,' 'format'
bad negative 's/"forward_s": 1/"forward_s": -1/' 'forward_s'
bad sums 's/\[1, 1\]/[1, 2]/' 'stages|nodes'
bad square 's/\[\[0, 1\], \[1, 0\]\]/[[0, 1], [1]]/' 'delay_s'
bad text 's/"memory": 2/"memory": "two"/' 'memory'
bad real 's/"memory": 2/"memory": 2.0/' 'memory: expected a whole number .*, found 2\.0$'
expect 1 'nothing.json' "$sk" plan "$dir/nothing.json"
expect 1 "$(basename "$dir")" "$sk" plan "$dir"
sed 's/"path": *\[[^]]*\]/"path": [0, 1, 0]/' "$dir/good.plan" >"$dir/bad.plan"
rc=0
"$sk" simulate "$dir/good.json" "$dir/bad.plan" >"$dir/out" 2>&1 || rc=$?
[ $rc = 3 ] || [ $rc = 1 ] || die "a path that returns to its node: exit status $rc"

# ---- models and texts: an error names the file and the tensor, and no file is written
short=(--iterations 1 --microbatches 1 --batches 1)
"$sk" train "${short[@]}" --out "$dir/model" >/dev/null || die "the good model is not made"
"$sk" export "$dir/model" --out "$dir/hf" >/dev/null || die "the good model is not exported"
"$sk" tokenize --out "$dir/text.bin" --corpus "$0" >/dev/null || die "the good text is not tokenized"
stage=stage-001.00000001.safetensors
damaged() { rm -rf "$dir/damaged-model" && cp -r "$1" "$dir/damaged-model"; } # damaged FOLDER: makes a copy to be damaged
damaged "$dir/model" && truncate -s 1000 "$dir/damaged-model/$stage"
expect 1 "$stage.*cut short" "$sk" eval "$dir/damaged-model"
damaged "$dir/model" && printf U | dd of="$dir/damaged-model/$stage" bs=1 seek=20000 conv=notrunc 2>/dev/null
expect 1 "$stage.*damaged" "$sk" train --from "$dir/damaged-model" "${short[@]}" --out "$dir/none"
damaged "$dir/model" && sed -i 's/"dim": *96/"dim":48/' "$dir/damaged-model/manifest.json"
expect 1 'embed_tokens.weight: its shape is 256 x 96, expected 256 x 48' "$sk" eval "$dir/damaged-model"
damaged "$dir/hf" && truncate -s -4 "$dir/damaged-model/model.safetensors"
expect 1 'model.safetensors.*cut short' "$sk" import "$dir/damaged-model" --out "$dir/none"
printf '\377\377\377\177' >>"$dir/damaged-model/model.safetensors"
expect 1 'weight: has a number that is not finite' "$sk" import "$dir/damaged-model" --out "$dir/none"
damaged "$dir/hf" && sed -i 's/"llama"/"gpt2"/' "$dir/damaged-model/config.json"
expect 1 'config.json: model_type' "$sk" generate "$dir/damaged-model"
expect 1 'empty --prompt' "$sk" generate "$dir/model" --prompt ''
truncate -s 1000 "$dir/text.bin"
expect 1 'text.bin: cut short' "$sk" train --corpus "$dir/text.bin" "${short[@]}" --out "$dir/none"
expect 1 '--microbatches 0' "$sk" train --microbatches 0 --out "$dir/none"
expect 1 "stranger.key: Not a directory" "$sk" train --iterations 1000000 --out "$dir/stranger.key"
expect 1 '/nothing/text.bin: No such' "$sk" tokenize --corpus "$0" --out "$dir/nothing/text.bin"
before=$(cd "$dir/model" && cat manifest.json stage-* | sha256sum)
expect 1 "$dir/model: there is a checkpoint already.*--force" "$sk" train "${short[@]}" --seed 9 --out "$dir/model"
expect 1 "$dir/model: there is a checkpoint already.*--force" "$sk" import "$dir/hf" --out "$dir/model"
[ "$(cd "$dir/model" && cat manifest.json stage-* | sha256sum)" = "$before" ] || die "a refused checkpoint was touched"
cp -r "$dir/model" "$dir/mine"
"$sk" train "${short[@]}" --iterations 2 --from "$dir/mine" --out "$dir/../${dir##*/}/mine" >/dev/null ||
	die "training does not go on in its own folder"
"$sk" train "${short[@]}" --seed 9 --out "$dir/mine" --force >/dev/null || die "train --force"
"$sk" import "$dir/hf" --out "$dir/mine" --force >/dev/null || die "import --force"
[ ! -e "$dir/none" ] || die "something was written in spite of an error"
for verb in "train ${short[*]} --seed 9" "import $dir/hf" "export $dir/model"; do # removes the replaced model's tokenizer
	rm -rf "$dir/replaced"
	"$sk" ${verb/--seed 9/--seed 8} --out "$dir/replaced" >/dev/null || die "$verb"
	touch "$dir/replaced/"{tokenizer.model,merges.txt,notes.txt}
	"$sk" $verb --out "$dir/replaced" --force >/dev/null || die "$verb --force"
	[ ! -e "$dir/replaced/tokenizer.model" ] && [ ! -e "$dir/replaced/merges.txt" ] || die "$verb --force leaves a tokenizer"
	[ -e "$dir/replaced/notes.txt" ] || die "$verb --force removes a file of the user"
done
cp "$dir/hf/tokenizer.json" "$dir/mine"
"$sk" train "${short[@]}" --seed 9 --tokenizer "$dir/mine/tokenizer.json" --out "$dir/mine" --force >/dev/null || die "train --tokenizer"
cmp "$dir/hf/tokenizer.json" "$dir/mine/tokenizer.json" || die "a tokenizer in use is removed"
touch "$dir/mine/stage-backup.safetensors" "$dir/mine/stage-0.safetensors.bak"
"$sk" train "${short[@]}" --iterations 2 --from "$dir/model" --out "$dir/mine" --force >/dev/null || die "train --force"
[ -e "$dir/mine/stage-backup.safetensors" ] && [ -e "$dir/mine/stage-0.safetensors.bak" ] || die "files of the user are removed"

# ---- one model in a folder
before=$(cd "$dir/hf" && cat config.json model.safetensors | sha256sum)
expect 1 "$dir/hf: there is a Hugging Face model.* already, and a folder holds one" "$sk" train "${short[@]}" --out "$dir/hf" --force
expect 1 "$dir/hf: there is a Hugging Face model.* already" "$sk" import "$dir/hf" --out "$dir/hf" --force
expect 1 "$dir/hf: there is a model already: .*--force" "$sk" export "$dir/mine" --out "$dir/hf"
[ "$(cd "$dir/hf" && cat config.json model.safetensors | sha256sum)" = "$before" ] || die "a refused model was touched"
expect 1 "$dir/mine: there is a checkpoint .* already, and a folder holds one" "$sk" export "$dir/hf" --out "$dir/mine" --force
damaged "$dir/hf" && "$sk" export "$dir/mine" --out "$dir/damaged-model" --force >/dev/null || die "export --force"
cmp -s "$dir/hf/model.safetensors" "$dir/damaged-model/model.safetensors" && die "export --force replaces nothing"
ln -s unmounted "$dir/disk"
expect 1 'disk: a link whose target cannot be used: No such file' "$sk" export "$dir/model" --out "$dir/disk"
[ "$(ls -A "$dir/damaged-model")" = "$(ls -A "$dir/hf")" ] || die "export --force leaves other files: $(ls -A "$dir/damaged-model")"
echo '{}' >"$dir/damaged-model/model.safetensors.index.json"
expect 1 'model.safetensors.index.json there names the weights of another model' \
	"$sk" export "$dir/mine" --out "$dir/damaged-model" --force
cp "$dir/model"/* "$dir/damaged-model"
expect 1 "$dir/damaged-model holds two models, a checkpoint .* and a Hugging Face model" "$sk" eval "$dir/damaged-model"
mkdir "$dir/void" # this folder is no model, like the folder of a cache that contains snapshots of models
for verb in "eval $dir/void" "generate $dir/void" "import $dir/void --out $dir/none" "train --from $dir/void"; do
	expect 1 "$dir/void: neither a checkpoint .* nor a Hugging Face folder .config.json. is there" "$sk" $verb
done
expect 1 'eval: meta-llama/Llama: No such file or directory' "$sk" eval meta-llama/Llama
expect 1 "hf/model.safetensors: Not a directory" "$sk" eval "$dir/hf/model.safetensors"
expect 1 "--from $dir/hf: a Hugging Face folder: skippipe import makes" "$sk" train --from "$dir/hf" "${short[@]}"
expect 1 '--preset, --model, --from: each gives a model' "$sk" train --from "$dir/model" --preset tiny "${short[@]}"
expect 1 "$dir/damaged-model holds two models" "$sk" train --from "$dir/damaged-model" "${short[@]}"
expect 1 "$dir/damaged-model holds two models" "${controller[@]}" --run-dir "$dir/two" --from "$dir/damaged-model"

# ---- a model whose files are links, as caches make them: a command never overwrites the files behind the links
echo '{}' >"$dir/tokenizer_config.json"
mkdir "$dir/links"
ln -s "$dir/model"/* "$dir/tokenizer_config.json" "$dir/links"
before=$(cat "$dir/model"/* | sha256sum)
"$sk" train "${short[@]}" --iterations 2 --from "$dir/links" --out "$dir/links" >/dev/null || die "training from links"
"$sk" import "$dir/hf" --out "$dir/links" --force >/dev/null || die "import over links"
[ "$(cat "$dir/model"/* | sha256sum)" = "$before" ] || die "a checkpoint is changed through links to it"
[ "$(cat "$dir/tokenizer_config.json")" = '{}' ] || die "a tokenizer is changed through a link to it"
"$sk" eval "$dir/links" --batches 1 >/dev/null || die "no checkpoint in place of the links"

# ---- an output that is also an input, under the same name or another name
"$sk" tokenize --out "$dir/own.bin" --corpus "$0" >/dev/null && cp "$0" "$dir/own.txt" || die "tokenize"
ln -s own.txt "$dir/link.txt"
ln "$dir/own.bin" "$dir/hard.bin"
ln -s good.json "$dir/link.json"
before=$(cat "$dir"/own.* "$dir/hf"/* "$dir/model"/* "$dir"/good.* | sha256sum)
expect 1 "link.txt: this file is an input" "$sk" tokenize --out "$dir/link.txt" --corpus "$dir/hf/../own.txt"
expect 1 "own.txt: this file is an input" "$sk" tokenize --out "$dir/own.txt" --corpus "$0" "$dir/link.txt"
expect 1 "tokenizer.json: this file is an input" "$sk" tokenize --out "$dir/hf/tokenizer.json" --tokenizer "$dir/hf" --corpus "$0"
expect 1 "hard.bin: this file is an input" "$sk" eval "$dir/model" --corpus "$dir/own.bin" --logits "$dir/hard.bin"
expect 1 "manifest.json: this file is an input" "$sk" eval "$dir/model" --logits "$dir/model/manifest.json"
expect 1 "-o .*link.json: this file is an input" "$sk" plan "$dir/good.json" --skip 0 --budget 0.05 -o "$dir/link.json"
for input in json plan; do
	expect 1 "good.$input: this file is an input" "$sk" simulate "$dir/good.json" "$dir/good.plan" --trace "$dir/good.$input"
done
[ "$(cat "$dir"/own.* "$dir/hf"/* "$dir/model"/* "$dir"/good.* | sha256sum)" = "$before" ] && [ -L "$dir/link.txt" ] || die "an input was changed"

# ---- options without an effect or a meaning
expect 2 'skippipe eval: --skip-schedule is no option of eval' "$sk" eval "$dir/model" --skip-schedule 3,0
expect 2 'skippipe tokenize: --seed is no option of tokenize' "$sk" tokenize --seed=1 --out "$dir/none" --corpus "$0"
expect 2 'skippipe generate: --from is no option of generate' "$sk" generate "$dir/model" --from "$dir/nothing"
expect 2 'train: --iter: no such option; is --iterations meant' "$sk" train --iter 1
expect 2 'train: --iter: no such option; is --iterations meant' "$sk" train --iter=1
expect 2 '--format: expected text or jsonl, got "xml"' "$sk" eval "$dir/model" --format xml
for seed in 9223372036854775808 18446744073709551615 99999999999999999999 -1; do
	expect 2 "--seed: expected a whole number from 0 to 9223372036854775807, got .$seed" "$sk" train --seed $seed --out "$dir/none"
done
"$sk" train "${short[@]}" --seed 9223372036854775807 --out "$dir/seed" >/dev/null && "$sk" eval "$dir/seed" --batches 1 >/dev/null ||
	die "the largest seed gives no readable checkpoint"
expect 1 '--batches 0: expected at least 1' "$sk" eval "$dir/model" --batches 0
for verb in eval generate; do
	expect 1 '--exit-after 0: expected a stage from 1 to the last, 5' "$sk" $verb "$dir/model" --exit-after 0
	expect 1 '--exit-after 6: expected a stage from 1 to the last, 5' "$sk" $verb "$dir/model" --exit-after 6
done
[ ! -e "$dir/none" ] || die "something was written in spite of an error"

# ---- a limit of file sizes (ulimit -f) is reported, and ends no program without a message. If a checkpoint cannot be
# completed, its files are removed, because they would fill the disk.
limited() { # limited BLOCKS WORDS COMMAND...: with files of at most BLOCKS KiB the command fails with these words
	(ulimit -f "$1" && expect 1 "$2: File too large" "${@:3}") || exit 1
}
limited 400 'limit/.*stage-001.*' "$sk" train "${short[@]}" --cut 0,6,6 --set dim=24 --set ffn_dim=256 --out "$dir/limit"
[ -z "$(ls "$dir/limit")" ] || die "a part of a checkpoint is left: $(ls "$dir/limit")"
limited 100 'model.safetensors' "$sk" export "$dir/model" --out "$dir/limit-hf"
limited 20 'limit.bin' "$sk" tokenize --corpus "$0" --out "$dir/limit.bin"
[ ! -e "$dir/limit.bin" ] || die "a part of a shard is left"

# ---- a checkpoint beyond the last iteration: nothing is trained, and the command says this
"$sk" train --from "$dir/model" "${short[@]}" >"$dir/out" 2>"$dir/again.err" || die "train: exit status $?"
grep -q "model is at iteration 1 already, and --iterations is 1: nothing was trained" "$dir/again.err" || die "$(cat "$dir/again.err")"

# ---- training that diverges: the last 1,000 weights are finite, but so large that the loss is not
damaged "$dir/hf" && truncate -s -4000 "$dir/damaged-model/model.safetensors"
for _ in $(seq 1000); do printf '\377\377\177\177'; done >>"$dir/damaged-model/model.safetensors"
"$sk" import "$dir/damaged-model" --out "$dir/large" >/dev/null || die "large weights are not imported"
before=$(cd "$dir/large" && cat manifest.json stage-* | sha256sum)
large=("$sk" train --from "$dir/large" --out "$dir/large" --format jsonl "${short[@]}" --iterations 3)
expect 1 'diverged after iteration 0: the validation loss is not finite' "${large[@]}"
expect 1 'diverged in iteration 1: the loss is not finite' "${large[@]}" --validate-every 0
expect 1 'the logits are not finite' "$sk" generate "$dir/large"
expect 1 'diverged in iteration 1' "${large[@]}" --validate-every 0 --skip-bad-steps 2
[ "$(grep -c 'is not finite; its microbatches are skipped' "$dir/expect.err")" = 2 ] || die "not 2 iterations were skipped"
expect 1 'the loss is not finite' "$sk" eval "$dir/large" --batches 1 --format jsonl
[ ! -s "$dir/expect.out" ] || die "a loss that is not finite was printed"
[ "$(cd "$dir/large" && cat manifest.json stage-* | sha256sum)" = "$before" ] || die "a checkpoint was written after divergence"

# ---- results that cannot be written
full() { # full ARGUMENTS...: the verb must fail if standard output is full
	local rc=0
	"$sk" "$@" >/dev/full 2>"$dir/full.err" || rc=$?
	[ "$rc" = 1 ] && grep -q 'stdout: No space left' "$dir/full.err" || die "/dev/full: exit status $rc: $*"
}
for verb in train eval generate import tokenize plan simulate verify console controller agent demo drill keygen; do
	full help "$verb"
done
full --version
full eval "$dir/model" --batches 1
full generate "$dir/model" --tokens 2
full train "${short[@]}"
full train "${short[@]}" --format jsonl --out "$dir/full"
[ -e "$dir/full/manifest.json" ] || die "the training did not go on to its checkpoint"
full plan "$dir/good.json" --skip 0 --budget 0.05
full simulate "$dir/good.json" "$dir/good.plan"
full keygen "$dir/another.key"

# ---- files and addresses that the controller cannot use
expect 1 'nokey' "$sk" controller --run-dir "$dir/r" --key "$dir/nokey" --admitted "$dir/admitted"
chmod 644 "$dir/stranger.key"
expect 1 'stranger.key.*0600|stranger.key.*600' "$sk" controller --run-dir "$dir/r" \
	--key "$dir/stranger.key" --admitted "$dir/admitted"
chmod 600 "$dir/stranger.key"
echo garbage >"$dir/garbage"
expect 1 'garbage:1' "$sk" controller --run-dir "$dir/r" --key "$dir/controller.key" --admitted "$dir/garbage"
expect 1 'cut.json' "${controller[@]}" --run-dir "$dir/r" --cluster "$dir/cut.json"
# A corpus on which no agent could train is refused before any agent joins.
waits=("${controller[@]}" --run-dir "$dir/corpus" --gather-s 600)
expect 1 '--corpus: .*none.txt: No such file' "${waits[@]}" --corpus "$dir/none.txt"
: >"$dir/empty.txt" && printf 'a\0b' >"$dir/zero.txt"
expect 1 '--corpus: .*empty.txt' "${waits[@]}" --corpus "$dir/empty.txt"
expect 1 '--corpus: .*zero.txt: not a text: byte 2 is NUL' "${waits[@]}" --corpus "$dir/zero.txt"
echo short >"$dir/short.txt"
expect 1 '--corpus: .*6 tokens are too few' "${waits[@]}" --corpus "$dir/short.txt"
expect 1 '--checkpoint-to: the program rclone is not installed' env PATH=/nowhere "${waits[@]}" \
	--checkpoint-to rclone:far:folder
[ ! -e "$dir/corpus/run.db" ] || die "a refused run has a record"
expect 1 'no agent' "${controller[@]}" --run-dir "$dir/alone"
expect 1 'there is a run in this folder already .--resume' "${controller[@]}" --run-dir "$dir/alone"
"${controller[@]}" --run-dir "$dir/first" --gather-s 60 --listen tcp://127.0.0.1:0 >"$dir/first.out" 2>"$dir/first.err" &
started+=($!)
for _ in $(seq 100); do grep -q 'listening at' "$dir/first.err" && break; sleep 0.05; done
address=$(sed -n 's,.*listening at \(tcp://[^ ]*\).*,\1,p' "$dir/first.err")
[ -n "$address" ] || die "the controller does not say where it listens"
for _ in $(seq 600); do grep -q '0 of 20 agents joined' "$dir/first.err" && break; sleep 0.1; done
grep -q '0 of 20 agents joined' "$dir/first.err" || die "the controller does not say for whom it waits"
expect 1 'nolist: No such file.*nobody may join' "$sk" controller --run-dir "$dir/r" --key "$dir/controller.key" \
	--admitted "$dir/nolist" --gather-s 0.1
expect 1 'names are not looked up' "${controller[@]}" --run-dir "$dir/second" --listen tcp://localhost:0
expect 1 'in use' "${controller[@]}" --run-dir "$dir/second" --listen "$address"
echo mine >"$dir/letter"
expect 1 'letter: a file that is not a socket' "${controller[@]}" --run-dir "$dir/second" --listen "ipc://$dir/letter"
[ "$(cat "$dir/letter")" = mine ] || die "--listen ipc://FILE removed the file"

# ---- every verb that a help text names exists
[ "$("$sk" public "$dir/agent.key")" = "$(cat "$dir/agent.pub")" ] || die "public prints another key"
for verb in $("$sk" help keygen | sed -n 's/.*skippipe \([a-z]*\) .*/\1/p'); do
	"$sk" help "$verb" >/dev/null || die "$verb is no verb"
done

# ---- keys: an agent that is not admitted says so and tries again, because an operator may admit it later
timeout 4 "$sk" agent --join "$address" --controller-key "$(cat "$dir/controller.pub")" \
	--key "$dir/stranger.key" --listen tcp://127.0.0.1:0 >"$dir/stranger.out" 2>"$dir/stranger.err"
grep -q 'not admitted' "$dir/stranger.err" || die "an agent that is not admitted does not say so"
expect 1 'controller-key' "$sk" agent --join "$address" --controller-key 12345 --key "$dir/agent.key" \
	--listen tcp://127.0.0.1:0

agent=("$sk" agent --join "$address" --controller-key "$(cat "$dir/controller.pub")" --key "$dir/agent.key"
	--listen tcp://127.0.0.1:0)
expect 1 'run-dir: .*agent.key: Not a directory' "${agent[@]}" --run-dir "$dir/agent.key"
expect 1 'run-dir: .*agent.key/below: Not a directory' "${agent[@]}" --run-dir "$dir/agent.key/below"
expect 1 'run-dir: /proc/self/x' "${agent[@]}" --run-dir /proc/self/x
far=$(printf '/%080d' $(seq 43)) # a path of 3.5 KB; a long message must keep its end, which names the cause
expect 1 'run.db.new: this path is [0-9]* bytes long.*choose a folder with a shorter path' "${controller[@]}" --run-dir "$dir$far"
expect 1 'run.db: no run in this folder' "$sk" verify "$dir$far"

# ---- runs
expect 1 'no run' "$sk" verify "$dir"
mkdir "$dir/damaged"
head -c 20000 /dev/urandom >"$dir/damaged/run.db"
expect 1 'run.db.*not a run' "$sk" verify "$dir/damaged"
expect 1 'nothing to compare' "$sk" verify "$dir/alone"
expect 1 'run.db.*already' "$sk" demo --headless --run-dir "$dir/alone"

# ---- the demo's corpus and disk
expect 1 'nothing.txt' "$sk" demo --headless --agents 6 --iterations 1 --time-scale 0 \
	--run-dir "$dir/r1" --corpus "$dir/nothing.txt"
echo short >"$dir/short.txt"
expect 1 'too few' "$sk" demo --headless --agents 6 --iterations 1 --time-scale 0 \
	--run-dir "$dir/r2" --corpus "$dir/short.txt"
expect 1 'file.*Not a directory|Not a directory' "$sk" demo --headless --run-dir "$dir/garbage/run"

# ---- a failed start keeps the user's files, and leaves the folder ready for the next start
mkdir "$dir/own" "$dir/own2"
echo mine >"$dir/own/cluster.json"
small=("$sk" demo --headless --agents 6 --stages 2,2,2 --iterations 1 --eval-every 0 --time-scale 0)
expect 1 'own/cluster.json: exists' "${controller[@]}" --run-dir "$dir/own"
expect 1 'own/cluster.json: exists' "${small[@]}" --run-dir "$dir/own"
[ "$(cat "$dir/own/cluster.json")" = mine ] || die "the user's cluster.json is lost"
rm "$dir/own/cluster.json"
expect 1 '9:kill:7: the cluster has 6 nodes' "${small[@]}" --run-dir "$dir/own" --at 9:kill:7
"${small[@]}" --run-dir "$dir/own" >"$dir/own.out" 2>"$dir/own.err" || die "no start after a failed start: $(cat "$dir/own.err")"
touch "$dir/own2/plans"
expect 1 'own2/plans: Not a directory' "${controller[@]}" --run-dir "$dir/own2"
rm "$dir/own2/plans"
expect 1 'no agent' "${controller[@]}" --run-dir "$dir/own2"

# ---- too few open files: without a check at the start, agents would dial a controller that can accept no connection
few=(bash -c 'ulimit -n 48 && exec "$@"' few)
# The controller needs files for 6 peers, an agent for 8 at least. The test accepts the message of either.
expect 1 'too few open files .* [68] peers: raise the limit .ulimit -n. to' "${few[@]}" "${small[@]}" --run-dir "$dir/few"
expect 1 'too few open files' "${few[@]}" "${agent[@]}"

if [ "$(id -u)" = 0 ] && mkdir "$dir/small" && mount -t tmpfs -o size=800k tmpfs "$dir/small" 2>/dev/null; then
	undo+=("umount '$dir/small'")
	"$sk" demo --headless --format jsonl --agents 6 --iterations 20 --time-scale 0 --run-dir "$dir/small/run" \
		>"$dir/small.events" 2>"$dir/small.err" &
	demo=$!
	started+=($demo)
	wait_text "$dir/small.events" '"event":"disk"' $demo 120
	mount -o remount,size=64m "$dir/small"
	wait $demo || die "the run ended with $? after the disk had room again: $(tail -n 3 "$dir/small.err")"
	check_verify "$dir/small/run" 1
else
	echo "no right to mount: a full disk is not tried here"
fi
