#!/bin/bash
# A small version of tests/convergence.sh. A model that was trained with a third of its stages skipped, or by a recipe,
# must learn almost as well as a model that was trained without skipping. It must also lose less when the evaluation
# skips stages. The training is short, so the limits are coarse.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -e /usr/share/games/fortunes/literature ] || { echo "no fortunes to train on"; exit 77; }

RUNS="full third robust" tests/convergence.sh "$work" tiny | tee "$work/table"
awk '$3 == "fp32/fp32" && $4 == "seed" { loss[$2] = $6; half[$2] = $9 }
	END {
		if (!loss["full"] || loss["full"] > 3) { print "the full model has not learned"; exit 1 }
		if (!loss["third"] || loss["third"] > loss["full"] * 1.06) { print "skipping a third costs more than 6%"; exit 1 }
		if (!loss["robust"] || loss["robust"] > loss["full"] * 1.05) { print "the recipe costs more than 5%"; exit 1 }
		if (half["full"] - loss["full"] < half["third"] - loss["third"] + 0.03) {
			print "training with skipped stages does not help to bear them"
			exit 1
		}
	}' "$work/table"
tests/convergence_plot.sh full "$work/tiny-full-fp32-fp32-1.jsonl" 1 robust "$work/tiny-robust-fp32-fp32-1.jsonl" 0.5@0.3,1 >"$work/convergence.svg"
grep -q '</svg>' "$work/convergence.svg"
