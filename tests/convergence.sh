#!/bin/bash
# Measures the effect of skipped stages on training; docs/convergence.md explains it.
#
#   tests/convergence.sh FOLDER [ITERATIONS [RUN...]]
#
# RUN is one of
#   full                       no stage is skipped
#   skip25, skip33, skip50     a share of the stages is skipped in all iterations, with exchanges of stages
#   ordered33                  the same without exchanges
#   begin33                    no stage is skipped in the first 15% of the iterations, no exchanges
#   whole33                    no stage is skipped in the first and the last 15%
#   swapped33, first-skipped, any-order, unequal    whole33 with exchanges, or with a broken rule
#
# The script trains a small model for each RUN (default: all). It writes the validation curve to FOLDER/RUN.jsonl, a
# checkpoint to FOLDER/RUN, and the evaluation with skipped stages to FOLDER/RUN.eval. Then it writes
# FOLDER/convergence.svg and prints a table. SHAPE changes the model, SKIPS the number of skipped stages, and TRAIN the
# training.
set -eu
cd "$(dirname "$0")/.."
folder=$1
iterations=${2:-400}
shift $(($# < 2 ? $# : 2))
model=${SKIPPIPE_BUILD:-$PWD/build}/bin/skippipe-model
# The model has twelve stages of one layer each. The first of them has the role of stage 0, which every microbatch
# visits. The real stage 0 holds only embedding and head here, so that a run can break even this rule.
SHAPE=${SHAPE:---preset tiny --set dim=64 --set n_heads=4 --set n_kv_heads=2 --set ffn_dim=176 --set n_stages=13}
TRAIN=${TRAIN:---microbatches 10 --validate-every 20 --set lr=0.005 --set warmup=20 --set final_lr=0.1}
# The number of stages that a microbatch skips at 25, 33 and 50%.
SKIPS=${SKIPS:-3 4 6}
mkdir -p "$folder"

rules() { # rules RUN: prints the options for its paths
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
