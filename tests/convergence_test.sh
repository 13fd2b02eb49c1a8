#!/bin/bash
# A small version of tests/convergence.sh. A model that was trained with a third of its stages skipped learns almost as
# well as a whole one. It also loses less when stages are skipped in the evaluation. The training is so short that the
# limits can only be coarse.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -e /usr/share/games/fortunes/literature ] || { echo "no fortunes to train on"; exit 77; }

export SHAPE="--preset tiny --set dim=48 --set n_heads=4 --set n_kv_heads=2 --set ffn_dim=128 --set n_layers=8 --set n_stages=9"
export TRAIN="--microbatches 6 --validate-every 120 --set lr=0.004 --set warmup=10 --set final_lr=0.1"
export SKIPS="2 3 4"
tests/convergence.sh "$work" 120 full skip33
loss() { awk -v row="$2" 'index($0, row) == 1 { for (i = 1; i < NF; i++) if ($i == "loss") print $(i + 1) }' "$work/$1.eval"; }
awk -v full="$(loss full nothing)" -v skip="$(loss skip33 nothing)" \
	-v full_half="$(loss full "4 of 7")" -v skip_half="$(loss skip33 "4 of 7")" 'BEGIN {
	printf "whole: full %.4f, skip33 %.4f; half left out: full %+.4f, skip33 %+.4f\n", full, skip, full_half - full, skip_half - skip
	if (full == "" || skip == "" || full > 3.2) { print "the full model has not learned"; exit 1 }
	if (skip > full * 1.10) { print "a third left out costs more than 10% of the loss"; exit 1 }
	if (full_half - full < skip_half - skip + 0.03) { print "training with stages left out does not help to bear it"; exit 1 }
}'
grep -q '</svg>' "$work/convergence.svg"
