#!/bin/bash
# What leaving stages out does to training: docs/convergence.md says what is measured and why.
#
#   tests/convergence.sh FOLDER [ITERATIONS [RUN...]]
#
# RUN is one of: full; a share of the stages left out from beginning to end, with exchanges: skip25, skip33,
# skip50, and without: ordered33; begin33 (nothing left out in the first 15% of the iterations, no exchanges);
# whole33 (nor in the last 15%); and whole33 with a rule loosened or broken: swapped33 (exchanges),
# first-skipped, any-order, unequal.
#
# Trains one small model for each RUN (default: all), a validation curve in FOLDER/RUN.jsonl, a
# checkpoint in FOLDER/RUN, and the model with stages left out in FOLDER/RUN.eval; then
# FOLDER/convergence.svg and a table on stdout. SHAPE changes the model (and SKIPS what its
# stages mean), TRAIN the training.
set -eu
cd "$(dirname "$0")/.."
folder=$1
iterations=${2:-400}
shift $(($# < 2 ? $# : 2))
model=${SKIPPIPE_BUILD:-$PWD/build}/bin/skippipe-model
# Twelve stages of one layer each. The first of them stands for stage 0, which every microbatch
# visits; the real stage 0 holds only embedding and head here, so that even this can be broken.
SHAPE=${SHAPE:---preset tiny --set dim=64 --set n_heads=4 --set n_kv_heads=2 --set ffn_dim=176 --set n_stages=13}
TRAIN=${TRAIN:---microbatches 10 --validate-every 20 --set lr=0.005 --set warmup=20 --set final_lr=0.1}
# How many of the twelve a microbatch leaves out at 25, 33 and 50%.
SKIPS=${SKIPS:-3 4 6}
mkdir -p "$folder"

rules() { # rules RUN: its paths
	read -r quarter third half <<<"$SKIPS"
	fifteen=$((iterations * 15 / 100))
	begin="--skip $third --grad-norm visits --whole-first $fifteen"
	whole="$begin --whole-last $fifteen"
	case $1 in
	full) echo "--skip 0" ;;
	skip25) echo "--skip $quarter --always 1 --swap 0.25" ;;
	skip33) echo "--skip $third --always 1 --swap 0.25" ;;
	skip50) echo "--skip $half --always 1 --swap 0.25" ;;
	ordered33) echo "--skip $third --always 1" ;;
	begin33) echo "$begin --always 1" ;;
	whole33) echo "$whole --always 1" ;;
	swapped33) echo "$whole --always 1 --swap 0.25" ;;
	first-skipped) echo "$whole" ;;
	any-order) echo "$whole --always 1 --break order" ;;
	unequal) echo "$whole --always 1 --break exposure" ;;
	*) echo "convergence: no run called $1" >&2; return 1 ;;
	esac
}

[ $# -gt 0 ] || set -- full begin33 whole33 swapped33 first-skipped any-order unequal
for run in "$@"; do
	paths=$(rules "$run")
	"$model" train $SHAPE $TRAIN $paths --set iterations="$iterations" --iterations "$iterations" \
		--out "$folder/$run" --force --format jsonl >"$folder/$run.jsonl"
	"$model" eval "$folder/$run" --table --always 1 --batches 64 >"$folder/$run.eval"
	printf '%-14s validation loss %s\n' "$run" \
		"$(sed -n 's/.*"validation":\([0-9.]*\).*/\1/p' "$folder/$run.jsonl" | tail -n 1)"
done
tests/convergence_plot.sh "$folder" "$@" >"$folder/convergence.svg"
