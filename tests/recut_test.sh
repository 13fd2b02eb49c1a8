#!/bin/bash
# A command, and later --resume, divide the model of a run into other stages. Six agents have separate folders, where
# files of former stages and files of the new stages lie together. Each change leaves the weights as they are. verify
# recomputes the whole record, and names a false entry from before a change. The losses equal those of a run without a
# change. If the first weights are deleted, verify begins with the files of the change. A replay shows the stages of
# each time.
. "$(dirname "$0")/lib.sh"
. tests/six_agents.sh
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify skippipe-model skippipe-console sqlite3
sk=$bin/skippipe
six_keys
head -c 200000 docs/convergence.md docs/agent.md >"$dir/text"
run=$dir/run
common=(--budget 0.1 --ahead 0 --eval-every 0)

losses() { sed -n 's/.*"event":"iteration","n":\([0-9]*\),.*"loss":\([0-9.]*\),.*/\1 \2/p' "$1"; }
# same_cut BEFORE AFTER LAYERS: compares the checkpoint AFTER with BEFORE, which one process divides into the new stages
same_cut() {
	local n
	n=$(grep -o '"iteration": *[0-9]*' "$1/manifest.json" | tr -dc 0-9)
	rm -rf "$dir/cut" "$dir"/*.hf
	"$sk" train --from "$1" --cut "$3" --iterations "$n" --microbatches 3 --validate-every 0 --corpus "$dir/text" \
		--out "$dir/cut" >"$dir/cut.out" 2>"$dir/cut.err" || die "cutting $1 in one process"
	for stage in "$2"/stage-*; do
		cmp "$stage" "$dir/cut/${stage##*/}" || die "${stage##*/}: other weights or moments after the change"
	done
	"$sk" export "$dir/cut" --out "$dir/cut.hf" >/dev/null && "$sk" export "$2" --out "$dir/run.hf" >/dev/null || die export
	cmp "$dir/cut.hf/model.safetensors" "$dir/run.hf/model.safetensors" || die "the exports differ"
	"$sk" export "$1" --out "$dir/before.hf" >/dev/null || die "export of $1"
	for folder in before run; do
		"$sk" eval "$dir/$folder.hf" --corpus "$dir/text" --batches 1 --logits "$dir/$folder.logits" >/dev/null || die eval
	done
	cmp "$dir/before.hf.logits" "$dir/run.hf.logits" 2>/dev/null || cmp "$dir/before.logits" "$dir/run.logits" ||
		die "the logits differ"
}

# ---- by a command; every agent has a folder of its own ----
six_begin first --run-dir "$run" --agents 6 --stages 2,2,2 --skip 0 --iterations 1000 --corpus "$dir/text" \
	--checkpoint-every 4 "${common[@]}" --at 4:cut:0,7,5 --at 4:cut:2,5,5 --at 9:cut:9,9
wait_for "$dir/first.events" 10 $controller 240
grep -q '"event":"cut","n":3,"layers":"2,5,5"' "$dir/first.events" || die "the stages did not change"
grep '"event":"device"' "$dir/first.events" | grep -q '"iteration":3,' || die "no event device of the last commit before the change"
grep -q 'script: cut:9,9: .*9 + 9 is 18 layers, but the model has 12' "$dir/first.err" || die "an impossible cut was accepted"
kill -TERM $controller
six_end
"$sk" verify "$run" --format json >"$dir/verify.json" 2>"$dir/verify.err" || die "verify: $(cat "$dir/verify.json")"
[ "$(field cuts <"$dir/verify.json")" = 1 ] || die "verify saw $(field cuts <"$dir/verify.json") changes"

# ---- by --resume, into more stages ----
last=$(ls "$run/checkpoints" | tail -n 1)
mkdir "$dir/before"
cp "$dir"/first.agent?/checkpoints/"$last"/* "$run/checkpoints/$last/manifest.json" "$dir/before" || die "no last checkpoint"
expect 1 '--cut: 5 \+ 5 is 10 layers, but the model has 12' "$sk" controller --resume "$run" --cut 5,5 \
	--key "$dir/controller.key" --admitted "$dir/admitted"
expect 1 '--stages adds up to 5 nodes, and the run has 6' "$sk" controller --resume "$run" --stages 3,2 \
	--key "$dir/controller.key" --admitted "$dir/admitted"
n=$((10#$last + 4))
six_begin first --resume "$run" --cut 3,3,3,2,1 --iterations $n --checkpoint-every 100 || die "resume"
six_end || die "the resumed run: exit status $?"
same_cut "$dir/before" "$run/checkpoints/$last" 3,3,3,2,1
check_verify "$run" 6
[ "$(field cuts <"$dir/verify.json")" = 2 ] || die "verify saw $(field cuts <"$dir/verify.json") changes"
[ "$(field committed <"$dir/verify.json")" = $n ] || die "$(field committed <"$dir/verify.json") commits"
"$sk" status "$run" >"$dir/status"
grep -q 'layers 3,3,3,2,1' "$dir/status" || die "status shows other stages"
[ ! -e "$run/recut" ] || die "files of the change are left"

# ---- a replay shows each time with the stages of that time ----
"$sk" admit "$dir/admitted" "$("$sk" keygen "$dir/console.key")" --role console --name console >/dev/null || die admit
"$sk" controller --replay "$run" --speed 4 --listen "ipc://$dir/r" --key "$dir/controller.key" --admitted "$dir/admitted" \
	2>"$dir/replay.err" &
started=($!)
"$bin/skippipe-console" --plain --connect "ipc://$dir/r" --controller-key "$("$bin/skippipe-key" public "$dir/controller.key")" \
	--key "$dir/console.key" >"$dir/replay.out" 2>&1 </dev/null &
started+=($!)
for _ in $(seq 300); do grep -q 'of 5 stages a microbatch' "$dir/replay.out" && break; sleep 0.1; done
for words in 'plan 1 from iteration 1: 3 of 3 stages a microbatch' ', layers 2,5,5, ' 'of 5 stages a microbatch'; do
	grep -q "$words" "$dir/replay.out" || die "no \"$words\" in the replay: $(cat "$dir/replay.out")"
done
kill -TERM "${started[@]}"
wait "${started[@]}"
started=()

# ---- a false entry from before the first change: two nodes exchange a gradient that they counted ----
mkdir "$dir/false"
sqlite3 "$run/run.db" ".backup '$dir/false/run.db'" || die "the record cannot be copied"
at=$(sqlite3 "$dir/false/run.db" "select max(iteration) from counted where iteration <= 3")
entries() { sqlite3 "$dir/false/run.db" "select node || ':' || items from counted where iteration = $at and stage = 1 order by node"; }
{ IFS=: read -r one first; IFS=: read -r other second; } < <(entries)
[ -n "$first" ] && [ -n "$second" ] || die "not two nodes counted: $(entries)"
sqlite3 "$dir/false/run.db" "update counted set items = '${second%% *}${first#"${first%% *}"}' where iteration = $at and node = $one;
	update counted set items = '${first%% *}${second#"${second%% *}"}' where iteration = $at and node = $other"
"$sk" verify "$dir/false" >"$dir/false.out" 2>&1 && die "verify does not find the false entry: $(entries)"
grep -q "^first difference: iteration $at, stage 1:" "$dir/false.out" || die "verify does not name the entry: $(cat "$dir/false.out")"

# ---- the losses equal those without a change, except for the order of additions ----
demo() { # demo NAME OPTION...: runs a demo to its end
	local name=$1
	shift
	"$sk" demo --headless --format jsonl --time-scale 0 --agents 5 --stages 1,2,2 --skip 0 --iterations 10 \
		--wire fp32 --sum-wire fp32 "${common[@]}" --run-dir "$dir/$name" "$@" >"$dir/$name.events" 2>"$dir/$name.err" || die "$name: exit status $?"
	check_gone "$dir/$name"
}
demo never
demo once --at 5:cut:3,9
paste -d' ' <(losses "$dir/never.events") <(losses "$dir/once.events") | awk '
	$1 != $3 { bad = 1 }
	{ d = ($2 - $4) / $2; if (d * d > 1e-10) bad = 1 }
	END { exit bad || NR != 10 }' ||
	die "other losses: $(paste -d' ' <(losses "$dir/never.events") <(losses "$dir/once.events"))"
# If other programs load this machine, a plan may leave out a replica that was measured as slow.
check_verify "$dir/once" 4
[ "$(field cuts <"$dir/verify.json")" = 1 ] || die "the stages of the demo did not change"

# ---- verify without the weights with which the run began: it begins with the files of the change ----
mv "$dir/cut" "$dir/start"
demo from --from "$dir/start" --corpus "$dir/text" --at 5:cut:3,9
check_verify "$dir/from" 4
rm -r "$dir/start" "$dir/from/checkpoints/00000000"
"$sk" verify "$dir/from" >"$dir/from.out" 2>&1 && die "verify proved iterations whose weights are missing"
grep -q '^NOT PROVED: 6 iterations' "$dir/from.out" && grep -q '^NOT recomputed: iterations 1 to 4;' "$dir/from.out" &&
	grep -q '/start/config.json: No such file' "$dir/from.out" || die "verify does not say what is missing: $(cat "$dir/from.out")"
"$sk" verify "$dir/from" --from 5 --format json >"$dir/from.out" || die "the rest differs: $(cat "$dir/from.out")"
[ "$(field began_after <"$dir/from.out")" = 4 ] || die "verify began elsewhere: $(cat "$dir/from.out")"
