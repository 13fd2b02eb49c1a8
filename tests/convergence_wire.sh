#!/bin/bash
# Measures the effect of the formats of activations and gradients on training; docs/convergence.md explains it.
#
#   tests/convergence_wire.sh FOLDER [SIZE [SEED...]]
#
# SIZE is S, M or L (default: S); SEED by default 1 2 3. The script trains in each format of FORMATS (WIRE/SUM-WIRE), for
# each SEED and each run of RUNS: full skips nothing, whole33 skips a third of the stages after the first and until the
# last 15% of the iterations. Runs of one seed share data, paths and the order of work. The curve is in
# FOLDER/SIZE-RUN-WIRE-SUM-SEED.jsonl, and what is there already is not trained again. The script prints the validation
# losses, and for each format its mean difference from fp32.
set -eu
cd "$(dirname "$0")/.."
folder=$1
size=${2:-S}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 1 2 3
model=${SKIPPIPE_BUILD:-$PWD/build}/bin/skippipe-model
iterations=400 microbatches=10
case $size in
S) dim=48 ffn=128 iterations=200 microbatches=8 ;;
M) dim=64 ffn=176 ;;
L) dim=128 ffn=352 ;;
*) echo "convergence_wire: no size $size" >&2; exit 2 ;;
esac
mkdir -p "$folder"
fifteen=$((iterations * 15 / 100))

last_loss() { sed -n 's/.*"validation":\([0-9.]*\).*/\1/p' "$1" | tail -n 1; }

for run in ${RUNS:-full whole33}; do
	skip="--skip 0"
	[ "$run" = full ] || skip="--skip 4 --always 1 --grad-norm visits --whole-first $fifteen --whole-last $fifteen"
	for seed in "$@"; do
		base=
		for format in fp32/fp32 ${FORMATS:-q8/q8 q6/q6 q6/q4}; do
			out=$folder/$size-$run-${format/\//-}-$seed.jsonl
			if [ ! -s "$out" ]; then
				"$model" train --preset tiny --set dim=$dim --set n_heads=4 --set n_kv_heads=2 \
					--set ffn_dim=$ffn --set n_stages=13 --microbatches $microbatches --validate-every 20 \
					--batches 64 --set lr=0.005 --set warmup=20 --set final_lr=0.1 --set iterations=$iterations \
					--iterations $iterations --seed "$seed" $skip --wire "${format%/*}" --sum-wire "${format#*/}" \
					--threads "${THREADS:-2}" --format jsonl >"$out.part"
				mv "$out.part" "$out"
			fi
			[ -n "$base" ] || base=$(last_loss "$out")
			echo "$size $run $format $seed $(last_loss "$out") $base"
		done
	done
done | awk '{
		printf "%s %-8s %-10s seed %s  %.4f  %+.2f%%\n", $1, $2, $3, $4, $5, 100 * ($5 / $6 - 1)
		fflush()
		key = $1 " " $2 " " $3
		if (!(key in n)) order[++keys] = key
		n[key]++
		sum[key] += 100 * ($5 / $6 - 1)
	}
	END { for (i = 1; i <= keys; i++) printf "%s: %+.2f%% on average of %d\n", order[i], sum[order[i]] / n[order[i]], n[order[i]] }'
