#!/bin/bash
# Without skipping, the cluster trains like one process: with the same initial weights, and the same data in every
# iteration. The losses must be equal, except for the order in which gradients are added.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-model
n=12

"$bin/skippipe" demo --headless --format jsonl --agents 8 --skip 0/6 --iterations $n --time-scale 0 \
	--seed 3 --wire fp32 --sum-wire fp32 --run-dir "$dir/run" >"$dir/events" 2>"$dir/demo.err" || die "demo: exit status $?"
grep '"event":"iteration"' "$dir/events" | field loss >"$dir/cluster"
microbatches=$(grep '"event":"plan"' "$dir/events" | head -n 1 | grep -o '"data_node"' | wc -l)

"$bin/skippipe" train --skip 0 --microbatches "$microbatches" --iterations $n --seed 3 --format jsonl \
	--validate-every 0 >"$dir/train" 2>"$dir/train.err" || die "train: exit status $?"
grep '"event":"iteration"' "$dir/train" | field loss >"$dir/plain"

[ "$(wc -l <"$dir/cluster")" = $n ] && [ "$(wc -l <"$dir/plain")" = $n ] || die "not $n losses"
paste "$dir/cluster" "$dir/plain" | awk '
	{ off = ($1 - $2) / $2; if (off < 0) off = -off; if (off > worst) worst = off; last = $1
	  if (NR == 1) first = $1 }
	END { printf "loss %s -> %s, at most %.4f%% from the plain model\n", first, last, 100 * worst
	      exit !(worst < 0.0005 && first - last > 1) }' || { paste "$dir/cluster" "$dir/plain"; die "the curves differ"; }
