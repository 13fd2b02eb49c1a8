#!/bin/bash
# A run begins with weights from a folder: first a checkpoint of skippipe, then a Hugging Face folder. The six agents
# have separate folders, so the controller sends every stage. The record names the source, and verify begins with it; a
# source that has changed is refused. The steps and moments of a checkpoint continue. Another corpus needs --new-corpus.
. "$(dirname "$0")/lib.sh"
. tests/six_agents.sh
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify skippipe-model
sk=$bin/skippipe

head -c 200000 /dev/urandom | base64 >"$dir/text"
tr 'a-z' 'b-za' <"$dir/text" >"$dir/text2"
six_keys
common=(--agents 6 --stages 2,2,2 --skip 1/3 --budget 0.1 --ahead 0 --eval-every 0 --corpus "$dir/text")

"$sk" train --preset tiny --set n_stages=4 --corpus "$dir/text" --iterations 3 --microbatches 2 --out "$dir/start" \
	>/dev/null || die "no checkpoint"
run() { six_begin "$@"; six_end; }
run ours --run-dir "$dir/ours" --from "$dir/start" "${common[@]}" --batch 2 --iterations 4 --checkpoint-every 2 || die "ours"
grep -q '"iteration": 7' "$dir/ours/checkpoints/00000004/manifest.json" || die "the steps did not go on"
for i in 0 1 2 3 4 5; do
	[ "$(ls "$dir/ours.agent$i/checkpoints/00000000" | wc -l)" = 1 ] || die "agent $i did not get its stage"
done
check_verify "$dir/ours" 4
rm "$dir"/ours/checkpoints/00000000/stage-*
"$sk" verify "$dir/ours" --to 1 >/dev/null || die "verify does not read the folder again"
"$sk" train --from "$dir/start" --corpus "$dir/text" --iterations 4 --microbatches 1 --out "$dir/later" >/dev/null ||
	die "train --from"
# The position counts microbatches. Six microbatches of four sequences are 12 microbatches of two sequences,
# or 24 microbatches of one sequence.
grep -q '"position": 12,' "$dir/ours/checkpoints/00000000/manifest.json" || die "the run reads from another position"
"$sk" train --from "$dir/start" --corpus "$dir/text" --iterations 4 --microbatches 1 --set batch=1 --out "$dir/smaller" \
	>/dev/null && grep -q '"position": 25,' "$dir/smaller/manifest.json" || die "train reads from another position"
for seed in "" "--seed 2"; do
	"$sk" train --from "$dir/start" $seed --corpus "$dir/text" --iterations 4 --microbatches 1 --format jsonl | grep -o '"loss":[0-9.]*'
done >"$dir/losses"
[ "$(wc -l <"$dir/losses")" = "$(sort -u "$dir/losses" | wc -l)" ] || die "train --from ignores --seed"
expect 1 "later has changed since the run began: stage 0" "$sk" verify "$dir/ours" --weights "$dir/later"

# ---- the learning rate of a training that continues with another length ----
rates() { # rates OPTION...: prints the learning rates of a training, in thousandths of the peak
	"$sk" train --corpus "$dir/text" --microbatches 1 --validate-every 0 --format jsonl "$@" |
		sed -n 's/.*"lr":\([^,]*\),.*/\1/p' | awk '{ printf "%.0f ", $1 * 200000 }'
}
small="--preset tiny --set n_stages=2 --set n_layers=2 --set warmup=1 --set final_lr=0.1 --set schedule=wsd"
[ "$(rates $small --iterations 10)" = "1000 1000 1000 1000 1000 1000 1000 1000 550 100 " ] || die "the schedule of a training"
rates $small --set iterations=10 --iterations 5 --out "$dir/stable" >/dev/null
rates $small --set iterations=10 --iterations 9 --out "$dir/falling" >/dev/null
[ "$(rates --from "$dir/stable" --iterations 10)" = "1000 1000 1000 550 100 " ] || die "the schedule of a training that goes on"
[ "$(rates --from "$dir/stable" --iterations 13)" = "1000 1000 1000 1000 1000 700 400 100 " ] ||
	die "the schedule of a longer training"
[ "$(rates --from "$dir/stable" --iterations 6)" = "100 " ] || die "the schedule of a shorter training"
[ "$(rates --from "$dir/falling" --iterations 12)" = "100 100 100 " ] || die "the rate rose again"
[ "$(rates --from "$dir/falling" --iterations 12 --set iterations=12)" = "1000 550 100 " ] || die "--set iterations is ignored"

# ---- a corpus that only the controller's machine has ----
head -c 1000000 /dev/urandom | base64 >"$dir/long text"
mkdir "$dir/own"
cp "$dir/long text" "$dir/own/copy"
agent_options=([5]="--corpus $dir/own/copy")
run far --run-dir "$dir/far" --agents 6 --stages 2,2,2 --skip 1/3 --budget 0.1 --ahead 0 --eval-every 0 \
	--corpus "long text" --iterations 2 || die "a corpus on the controller only"
agent_options=()
fetched=$(grep -l "fetching .*/corpus/0000.long text from the controller" "$dir"/agent?.err | wc -l)
[ "$fetched" -ge 1 ] || die "no data node fetched the corpus"
[ "$(ls -d "$dir"/far.agent[0-4]/corpus/* | wc -l)" = "$fetched" ] || die "it was not fetched whole"
[ ! -e "$dir/far.agent5/corpus" ] || die "an agent with a corpus of its own fetched it"
(cd "$dir" && check_verify "$dir/far" 4)

# ---- another corpus ----
run other --run-dir "$dir/other" --from "$dir/start" --agents 6 --stages 2,2,2 --skip 1/3 --budget 0.1 --ahead 0 \
	--eval-every 0 --corpus "$dir/text2" --iterations 1 && die "another corpus was accepted"
grep -q "was trained on another corpus: .*--new-corpus" "$dir/other.err" || die "no word of --new-corpus"
expect 1 "was trained on another corpus: .*--new-corpus" "$sk" train --from "$dir/start" --corpus "$dir/text2" \
	--iterations 4 --microbatches 1
"$sk" train --from "$dir/start" --corpus "$dir/text2" --new-corpus --iterations 4 --microbatches 1 >/dev/null ||
	die "--new-corpus"
