#!/bin/bash
# Measures how skipped stages, and the formats of activations and gradients, affect training. docs/convergence.md has
# results.
#
#   tests/convergence.sh FOLDER [SIZE [SEED...]]
#
# SIZE is one of these (default M); SEED defaults to 1:
#
#   S, M, L    12 stages of one layer, and a stage 0 with embedding and head only; Debian's fortunes
#   M6, L6     six stages of two layers; Debian's fortunes
#   deep       six stages of two layers; Python sources from Debian's packages
#
# RUNS lists the runs as NAME[@ITERATIONS][:LEARNING-RATE[:WARMUP[:SCHEDULE]]]. The learning rate rises for WARMUP
# iterations (default 20). Then it follows SCHEDULE: cosine (default), linear, wsd or wsd-sqrt. The last two take the
# length of the decay as a share or number of iterations, as in wsd=0.35. The names:
#
#   full                   no stage is skipped
#   shallow                a model with a third of the layers
#   third                  a third of the stages is skipped in all iterations
#   begin33                a third is skipped, except in the first 15% of the iterations
#   whole33                a third is skipped, except in the first and the last 15%
#   swapped33, first-skipped, any-order, unequal    whole33 with exchanged stages, or with one rule broken
#   speed, robust          the recipes
#   speed15, robust40      a recipe whose first phase lasts for 15 or 40% of the iterations (any number)
#   steps25-50             growth in two steps: all middle stages are skipped in the first 25% of the iterations, half of
#                          them until 50%, and none in the rest (any numbers)
#   full-planned, third-planned, speed-planned, robust-planned    only deep: the paths of plans for shipped20.json
#
# FORMATS lists formats as WIRE/SUM-WIRE. All runs of a seed use the same data. The curve of a run is in
# FOLDER/SIZE-RUN-WIRE-SUM-SEED.jsonl, its checkpoint is beside it, and a run whose files exist is not trained again.
#
# The script prints each validation loss and its distance from the loss of the first run (of the first format, if there
# are several). It also prints the loss with half of the droppable stages skipped at random, and means over seeds.
set -eu
cd "$(dirname "$0")/.."
folder=$1
size=${2:-M}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 1
bin=${SKIPPIPE_BUILD:-$PWD/build}/bin
iterations=400 stages=13 batches=64 every=20 train="--microbatches 10 --set lr=0.005"
case ${size%6} in
tiny) shape="--set dim=48 --set ffn_dim=128" iterations=120 stages=9 train="--microbatches 6 --set lr=0.004" ;;
S) shape="--set dim=48 --set ffn_dim=128" iterations=200 train="--microbatches 8 --set lr=0.005" ;;
M) shape="--set dim=64 --set ffn_dim=176" ;;
L) shape="--set dim=128 --set ffn_dim=352" ;;
deep) shape="--set dim=64 --set ffn_dim=176 --set batch=1 --set sequence=256" iterations=1000 stages=6
	batches=256 every=50
	train="--microbatches 30 --set lr=0.005 --corpus $folder/python.txt" ;;
*) echo "convergence: no size $size" >&2; exit 2 ;;
esac
[ "$size" = "${size%6}" ] || stages=6
always=1
[ $stages != 6 ] || always=5
third=$(((stages + 1) / 3))
mkdir -p "$folder"

# Downloads some 120 MB of packages and installs none of them.
python_sources() {
	local packages=$folder/packages package
	mkdir -p "$packages"
	for package in sympy django sqlalchemy networkx matplotlib pandas twisted sklearn scipy numpy; do
		(cd "$packages" && apt-get -qq download python3-$package)
		dpkg -x "$packages"/python3-${package}_*.deb "$packages/files"
	done
	find "$packages/files" -name '*.py' -size +1k | LC_ALL=C sort | tr '\n' '\0' | xargs -0 cat >"$folder/python.part"
	mv "$folder/python.part" "$folder/python.txt"
	rm -r "$packages"
}
[ "$size" != deep ] || [ -s "$folder/python.txt" ] || python_sources

plan() { # plan NAME OPTION...: plans the phases of a run
	local name=$1
	shift
	[ -s "$folder/$name.json" ] || "$bin/skippipe" plan schedule/tests/data/shipped20.json --assignment free \
		--overlap-sync --evaluations 600000 --iterations "$n" "$@" -o "$folder/$name.json"
	echo "--plan $folder/$name.json"
}

rules() { # rules RUN: prints the options for its layers and paths
	local fifteen=$((n * 15 / 100)) layers="--set n_layers=12 --set n_stages=$stages"
	local skip="--skip $third --always $always --whole-first $fifteen"
	[ $stages = 6 ] || layers="--set n_layers=$((stages - 1)) --set n_stages=$stages"
	case $1 in
	full) echo "$layers --skip 0" ;;
	shallow) echo "--set n_layers=$(((stages == 6 ? 12 : stages - 1) / 3)) --set n_stages=2" ;;
	third) echo "$layers --skip $third --always $always" ;;
	begin33) echo "$layers $skip" ;;
	whole33) echo "$layers $skip --whole-last $fifteen" ;;
	swapped33) echo "$layers $skip --whole-last $fifteen --swap 0.25" ;;
	first-skipped) echo "$layers --skip $third --whole-first $fifteen --whole-last $fifteen" ;;
	any-order) echo "$layers $skip --whole-last $fifteen --break order" ;;
	unequal) echo "$layers $skip --whole-last $fifteen --break exposure" ;;
	speed | robust) echo "$layers --recipe $1" ;;
	speed[0-9]*) echo "$layers --always $always --stack --skip-schedule $((stages - 2))@0,0@${1#speed}%" ;;
	robust[0-9]*) echo "$layers --always $always --stack" \
		"--skip-schedule $((stages - 2))@0,30%:$(((stages - 1) / 2))@${1#robust}%" ;;
	steps[0-9]*) echo "$layers --always $always --stack --skip-schedule" \
		"$((stages - 2))@0,$(((stages - 1) / 2))@$(sed 's/steps\(.*\)-\(.*\)/\1%,0@\2%/' <<<"$1")" ;;
	full-planned) echo "$layers $(plan "full-$n" --always 5 --skip-schedule 0@0)" ;;
	third-planned) echo "$layers $(plan "third-$n" --always 5 --skip-schedule 2@0)" ;;
	*-planned) echo "$layers --stack $(plan "$1-$n" --recipe "${1%-planned}")" ;;
	*) echo "convergence: no run called $1" >&2; return 1 ;;
	esac
}

last_loss() { sed -n 's/.*"validation":\([0-9.]*\).*/\1/p' "$1" | tail -n 1; }
corpus=$(sed -n 's/.*\(--corpus .*\)/\1/p' <<<"$train")

for seed in "$@"; do
	base=
	for run in ${RUNS:-full third speed robust}; do
		IFS=: read -r name rate warmup schedule <<<"$run"
		n=$iterations
		schedule=${schedule:-cosine}
		[ "$name" = "${name%@*}" ] || n=${name#*@}
		name=${name%@*}
		options=$(rules "$name")
		options="$options --set warmup=${warmup:-20}${rate:+ --set lr=$rate} --set schedule=${schedule%%=*}"
		case $schedule in *=*) options="$options --set decay=${schedule#*=}" ;; esac
		case ${FORMATS:-} in *' '*) base= ;; esac
		for format in ${FORMATS:-fp32/fp32}; do
			out=$folder/$size-$run-${format/\//-}-$seed
			if [ ! -s "$out.jsonl" ]; then
				"$bin/skippipe" train --preset tiny --set n_heads=4 --set n_kv_heads=2 $shape $train \
					--grad-norm visits --validate-every $every --batches $batches --set final_lr=0.1 \
					--set iterations="$n" --iterations "$n" --seed "$seed" $options --wire "${format%/*}" \
					--sum-wire "${format#*/}" --threads "${THREADS:-2}" --out "$out" --force --format jsonl >"$out.part"
				mv "$out.part" "$out.jsonl"
			fi
			half=-
			[ "$name" = shallow ] || half=$("$bin/skippipe" eval "$out" $corpus --batches $batches --omit-fraction 0.5 \
				--always $always --threads "${THREADS:-2}" | sed -n 's/.*loss \([0-9.]*\).*/\1/p')
			[ -n "$base" ] || base=$(last_loss "$out.jsonl")
			echo "$size $run $format $seed $(last_loss "$out.jsonl") $base $half"
		done
	done
done | awk '{
		change = 100 * ($5 / $6 - 1)
		printf "%s %-14s %-9s seed %s  %.4f  %+.2f%%  half %s\n", $1, $2, $3, $4, $5, change, $7
		fflush()
		key = $1 " " $2 " " $3
		if (!(key in n)) order[++keys] = key
		n[key]++
		sum[key] += change
		half[key] += $7 == "-" ? 0 : 100 * ($7 / $5 - 1)
		if ($7 != "-") halves[key]++
	}
	END {
		for (i = 1; i <= keys; i++) {
			key = order[i]
			printf "%s: %+.2f%% on average of %d", key, sum[key] / n[key], n[key]
			if (halves[key]) printf "; half %+.1f%% against itself", half[key] / halves[key]
			print ""
		}
	}'
