#!/bin/bash
# Measures the effect of the formats of activations and gradients on training; docs/convergence.md explains it.
#
#   tests/convergence_wire.sh FOLDER [ITERATIONS [SEED...]]
#
# The script trains size S on an embedded cluster of thirteen agents, one for each stage, without skipping, for each
# SEED (default: 1) in each format of WIRES (default: fp32 bf16). The events are in FOLDER/WIRE-SEED.jsonl. Each run is verified. The script
# prints the validation losses, one row for each validation.
set -eu
cd "$(dirname "$0")/.."
folder=$1
iterations=${2:-200}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 1
bin=${SKIPPIPE_BUILD:-$PWD/build}/bin
mkdir -p "$folder"
cat >"$folder/model.json" <<END
{"format": "skippipe.model/1",
 "model": {"vocab": 256, "dim": 48, "n_layers": 12, "n_heads": 4, "n_kv_heads": 2, "ffn_dim": 128, "context": 256,
  "n_stages": 13, "rope_theta": 10000, "norm_eps": 1e-5, "init_std": 0.06, "tied": false},
 "recipe": {"batch": 4, "sequence": 64, "lr": 0.005, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1,
  "clip": 1, "warmup": 20, "iterations": $iterations, "final_lr": 0.1}}
END
columns=() losses=()
for seed in "$@"; do
	for wire in ${WIRES:-fp32 bf16}; do
		run=$wire-$seed
		rm -rf "${folder:?}/$run"
		"$bin/skippipe" demo --headless --format jsonl --stages 1,1,1,1,1,1,1,1,1,1,1,1,1 --skip 0/13 \
			--model "$folder/model.json" --microbatches 8 --iterations "$iterations" --seed "$seed" \
			--eval-every 20 --eval-batches 64 --checkpoint-every 0 --silence-ms 5000 --time-scale 0 --wire $wire \
			--run-dir "$folder/$run" >"$folder/$run.jsonl"
		"$bin/skippipe" verify "$folder/$run" >"$folder/$run.verify" ||
			{ cat "$folder/$run.verify"; exit 1; }
		sed -n 's/.*"event":"validation".*"n":\([0-9]*\),"loss":\([0-9.]*\).*/\1 \2/p' \
			"$folder/$run.jsonl" >"$folder/$run.losses"
		columns+=("$run")
		losses+=("$folder/$run.losses")
	done
done
echo "iteration ${columns[*]}"
awk '!($1 in row) { order[++n] = $1 }
	{ row[$1] = row[$1] sprintf(" %.4f", $2) }
	END { for (i = 1; i <= n; i++) print order[i] row[order[i]] }' "${losses[@]}"
