#!/bin/bash
# Kills programs at each of their durable steps: tests/crash_points_test.sh [POINTS|all] [lost|kept]. A step is a
# create, a write, half of a write, a sync, a rename, a link or a removal (tests/crash.c). A first run of each program
# lists its steps. Then, for each k, a run is killed at its k-th step, and the test uses its files:
#
#     keygen, admit, expel   the old file or the new one is complete and has mode 0600; a repetition works
#     train                  a checkpoint can be resumed and gives the same bits, or there is none yet
#     export                 no incomplete file has its final name; a repetition gives the same bytes
#     train, export --force  the old model stays until the new one is complete
#     controller             the supervisor starts it again, the run ends, and verify agrees; this also holds when it
#                            changes the stages of the run
#
# Every second killed process also loses all changes that were not synced, as in a power loss. With `lost` every killed
# process loses these changes, with `kept` no process does.
#
# POINTS steps of a long list are used, spread evenly (default 6). `all` uses every step of the controller, and the
# first, middle and last step on every file of train and export.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-model skippipe-verify
points=${1:-6} power=${2:-by turns}
sk=$bin/skippipe shim=$bin/../tests/crash.so
[ -e "$shim" ] || skip "crash.so is not there"
work=$dir/work died=0 tried=0 losing=0
mkdir "$dir/lost"

# crash_at K PROGRAM COMMAND...: runs a command with tests/crash.c, which kills PROGRAM at step K; 0 only lists the
# steps
crash_at() {
	local k=$1 program=$2
	shift 2
	rm -f "$dir/list" "$dir/mark" "$dir/lost"/*
	case $power in
	lost) losing=1 ;;
	kept) losing=0 ;;
	*) losing=$((1 - losing)) ;;
	esac
	[ $losing = 1 ] && [ "$k" != 0 ] && export CRASH_LOST=$dir/lost || unset CRASH_LOST
	{ # keeps the message of bash about the killed process out of the log
		LD_PRELOAD=$shim CRASH_UNDER=$work CRASH_PROGRAM=$program CRASH_AT=$k CRASH_LIST=$dir/list \
			CRASH_MARK=$dir/mark "$@" >"$dir/out" 2>"$dir/crash.err" </dev/null
	} 2>/dev/null
}

spread() { # prints POINTS of the lines on stdin, spread evenly
	[ "$points" = all ] && { cat; return; }
	awk -v most="$points" '{ k[NR] = $1 }
		END { step = NR > most ? NR / most : 1; for (i = 1; i <= NR; i += step) print k[int(i)] }'
}
# Prints the first, middle and last step of each sequence of steps on one file.
pick() {
	sed 's/.* //' "$dir/list" | awk '
		function close_group() {
			print first
			print int((first + last) / 2)
			print last
		}
		$0 != was { if (last) close_group(); first = NR; was = $0 }
		{ last = NR }
		END { close_group() }' | sort -n -u | spread
}
all_steps() { seq "$(wc -l <"$dir/list")"; }

reach() { # checks that the process was killed at its step
	tried=$((tried + 1))
	[ -e "$dir/mark" ] && died=$((died + 1))
}
private() { [ -z "$(find "$work" -type f -perm /077)" ] || die "others may read what a crash left"; }

# ---- keys
crash_at 0 skippipe-key "$sk" keygen "$work/k" && die "keygen made a folder"
mkdir -m 700 "$work"
crash_at 0 skippipe-key "$sk" keygen "$work/k" || die "keygen"
cp "$work/k" "$dir/other.key"
for k in $(all_steps); do
	rm -rf "$work"; mkdir -m 700 "$work"
	crash_at "$k" skippipe-key "$sk" keygen "$work/k" && die "keygen lives on after step $k"
	reach
	private
	[ -e "$work/k" ] || "$sk" keygen "$work/k" >/dev/null || die "keygen again after step $k"
	"$bin/skippipe-key" public "$work/k" >/dev/null || die "keygen left a bad key at step $k"
done

# ---- the admitted list
key=$("$bin/skippipe-key" public "$dir/other.key")
other=$("$sk" keygen "$dir/second.key")
rm -rf "$work"; mkdir -m 700 "$work"
"$sk" admit "$work/list" "$other" --role agent --name first || die "admit"
cp "$work/list" "$dir/before"
for act in admit expel; do
	if [ $act = admit ]; then
		command=("$sk" admit "$work/list" "$key" --role console --name second)
	else
		cp "$work/list" "$dir/before"
		command=("$sk" expel "$work/list" second)
	fi
	crash_at 0 skippipe-key "${command[@]}" || die "$act"
	cp "$work/list" "$dir/after"
	cmp -s "$dir/before" "$dir/after" && die "$act changed nothing"
	for k in $(all_steps); do
		rm -rf "$work"; mkdir -m 700 "$work"; cp "$dir/before" "$work/list"
		crash_at "$k" skippipe-key "${command[@]}"
		reach
		private
		cmp -s "$work/list" "$dir/before" || cmp -s "$work/list" "$dir/after" ||
			die "$act left neither list at step $k"
		"${command[@]}" 2>/dev/null
		cmp -s "$work/list" "$dir/after" || die "$act again after step $k"
	done
done
echo "keys: $died of $tried killed"

# ---- checkpoints: three iterations with a checkpoint after each, killed and resumed
rest=(--microbatches 2 --validate-every 0 --iterations 3 --checkpoint-every 1 --out "$work/checkpoint")
train() { crash_at "$1" skippipe-model "$sk" train --preset tiny --seed 3 "${rest[@]}"; } # train K
manifest() { sed -n "s/.*\"$1\": *\"*\([0-9a-f]*\).*/\1/p" "$work/checkpoint/manifest.json"; }
hashes() { manifest hash | grep -xE "[0-9a-f]{16}"; } # leaves out the hash function's name, which has the same key
rm -rf "$work"; mkdir "$work"
train 0 || die "train"
want=$(hashes)
[ "$(wc -w <<<"$want")" = 6 ] || die "six stages have not six hashes"
for k in $(pick); do
	rm -rf "$work"; mkdir "$work"
	train "$k" && die "train lives on after step $k"
	reach
	if [ ! -e "$work/checkpoint/manifest.json" ]; then
		train 0 || die "train begins no more after step $k"
	else
		[ "$(manifest iteration)" = 3 ] || "$sk" train --from "$work/checkpoint" "${rest[@]}" >"$dir/out" \
			2>"$dir/train.err" || die "train does not go on after step $k"
		"$sk" eval "$work/checkpoint" --batches 1 >"$dir/out" 2>"$dir/eval.err" || die "eval after step $k"
	fi
	[ "$(hashes)" = "$want" ] || die "train went on to other bits after step $k"
done

# Another model's checkpoint of the same iteration replaces the first checkpoint.
another=("$sk" train --preset tiny --seed 4 "${rest[@]}" --checkpoint-every 3 --force)
rm -rf "$dir/old"; cp -r "$work/checkpoint" "$dir/old"
crash_at 0 skippipe-model "${another[@]}" || die "train --force"
new=$(hashes)
[ "$new" != "$want" ] || die "train --force replaces nothing"
for k in $(pick); do
	rm -rf "$work"; mkdir "$work"; cp -r "$dir/old" "$work/checkpoint"
	crash_at "$k" skippipe-model "${another[@]}" && die "train --force lives on after step $k"
	reach
	"$sk" eval "$work/checkpoint" --batches 1 >"$dir/out" 2>"$dir/eval.err" || die "train --force left no checkpoint at step $k"
	[ "$(hashes)" = "$want" ] || [ "$(hashes)" = "$new" ] || die "train --force left parts of two checkpoints at step $k"
done

# ---- exports
rm -rf "$work"; mkdir "$work"
"$sk" train --preset tiny --seed 3 --microbatches 1 --validate-every 0 --iterations 1 --out "$dir/model" \
	>"$dir/out" 2>"$dir/train.err" || die "train"
for form in hf; do
	crash_at 0 skippipe-model "$sk" export "$dir/model" --out "$work/$form" || die "export $form"
	rm -rf "$dir/whole"; cp -r "$work/$form" "$dir/whole"
	for k in $(pick); do
		rm -rf "$work"; mkdir "$work"
		crash_at "$k" skippipe-model "$sk" export "$dir/model" --out "$work/$form" &&
			die "export lives on after step $k"
		reach
		for file in "$work/$form"/*; do
			case $file in *.tmp.* | *\*) continue ;; esac
			cmp "$file" "$dir/whole/${file##*/}" || die "export left half a file at step $k"
		done
		"$sk" export "$dir/model" --out "$work/$form" --force >"$dir/out" || die "export again after step $k"
		diff -r -x '*.tmp.*' "$work/$form" "$dir/whole" || die "export again gave other bytes after step $k"
	done
done

# The export of a model with another shape replaces the model. While the folder has no config.json, it is not a model,
# and the complete new model is in a subfolder.
rm -rf "$dir/old"
"$sk" train --preset tiny --set dim=48 --microbatches 1 --validate-every 0 --iterations 0 --out "$dir/small" >"$dir/out" &&
	"$sk" export "$dir/small" --out "$dir/old" >"$dir/out" || die "export of a small model"
touch "$dir/old/merges.txt" # a file of the old model's tokenizer
replace() { crash_at "$1" skippipe-model "$sk" export "$dir/model" --out "$work/hf" --force; } # replace K
rm -rf "$work"; mkdir "$work"; cp -r "$dir/old" "$work/hf"
replace 0 || die "export --force"
diff -r "$work/hf" "$dir/whole" || die "export --force leaves other files"
for k in $(pick) $(grep -n 'model.safetensors$\|config.json$' "$dir/list" | cut -d: -f1 | tail -n 6); do
	rm -rf "$work"; mkdir "$work"; cp -r "$dir/old" "$work/hf"
	replace "$k" && die "export --force lives on after step $k"
	reach
	if [ -e "$work/hf/config.json" ]; then
		"$sk" eval "$work/hf" --batches 1 >"$dir/out" 2>"$dir/eval.err" || die "export --force left no model at step $k"
		cmp -s "$work/hf/config.json" "$dir/old/config.json" && want=old || want=whole
		[ "$(ls "$work/hf")" = "$(ls "$dir/$want")" ] || die "export --force left other files at step $k: $(ls "$work/hf")"
	else
		cmp "$work/hf/.skippipe-export/config.json" "$dir/whole/config.json" || die "export --force left no model at step $k"
	fi
	replace 0 || die "export --force after step $k"
	diff -r "$work/hf" "$dir/whole" || die "export --force again gave other files after step $k"
done
echo "keys, checkpoints, exports: $died of $tried killed"

# ---- the controller
run=$work/run
demo() { # demo K [OPTION...]: runs a demo whose controller is killed at step K
	local k=$1
	shift
	crash_at "$k" skippipe-controller "$sk" demo --headless --format jsonl --agents 4 --stages 2,2 --skip 0 \
		--iterations 3 --microbatches 2 --time-scale 0 --eval-every 2 --eval-batches 1 --budget 0.05 \
		--silence-ms 3000 --gather-s 60 --run-dir "$run" "$@"
}
kill_at() { # kill_at K CUTS [OPTION...]: runs a demo, and checks that it was resumed and has CUTS changes of stages
	local k=$1 cuts=$2
	shift 2
	rm -rf "$work"; mkdir "$work"
	demo "$k" "$@" || { tail -n 3 "$dir/crash.err"; die "the run does not end well after step $k"; }
	reach
	[ -e "$dir/mark" ] || late=$((late + 1)) # this run had fewer than K steps
	[ ! -e "$dir/mark" ] || [ "$(grep -c 'controller started' "$run/log/demo.log")" = 2 ] ||
		die "the controller was not started again after step $k"
	"$sk" verify "$run" --format json >"$dir/verify.json" 2>"$dir/verify.err" || die "verify after step $k"
	[ "$(field committed <"$dir/verify.json")" = 3 ] || die "commits are missing after step $k"
	[ "$(field cuts <"$dir/verify.json")" = "$cuts" ] || die "the stages did not change after step $k"
	[ "$cuts" != 0 ] || check_plans "$run" >"$dir/out"
	check_gone "$run"
}
rm -rf "$work"; mkdir "$work"
demo 0 || die "demo"
late=0
for k in $([ "$points" = all ] && all_steps || all_steps | spread); do kill_at "$k" 0; done

# Before iteration 2, two stages become three. The steps are those from the checkpoint to the removal of temporary
# files.
rm -rf "$work"; mkdir "$work"
demo 0 --at 2:cut:0,7,5 || die "demo with other stages"
first=$(grep -n "/checkpoints/" "$dir/list" | head -n 1) last=$(grep -n "/recut/" "$dir/list" | tail -n 1)
[ -n "$last" ] || die "the run did not change its stages"
for k in $(seq "${first%%:*}" $((${last%%:*} + 3)) | spread); do kill_at "$k" 1 --at 2:cut:0,7,5; done
[ $late -le $((tried / 10 + 1)) ] || die "$late of the steps did not come again"
echo "all: $died of $tried killed"
