#!/bin/bash
# Measures how often small models find the true continuation of a text. docs/convergence.md has results.
#
#   tests/downstream.sh FOLDER [TRAINING HELD-OUT]
#
# The script makes 2,000 questions from the text HELD-OUT (FOLDER/items.jsonl). A question has a context of 128 bytes,
# which ends with a word, and four choices: the next 64 bytes of the text, and three continuations from elsewhere in it.
# Then the script trains a model on the text TRAINING for each recipe and seed, unless its checkpoint FOLDER/RUN-SEED
# exists. The model answers the questions with all stages, and with half of the middle stages skipped, drawn for each
# question.
#
# The script prints two shares of right answers with their 95% intervals. "loss" takes the choice with the lowest loss
# after the context; this depends more on how common a text is than on the context. "gain" subtracts the loss after
# the context from the loss without the context, and takes the choice with the largest difference (acc_mutual_info in
# lm_eval). For the loss without the context, an "x" replaces the context.
#
# By default the texts are Debian's fortunes, of which every fifth is held out. The variables SEEDS ("1"), RUNS ("full
# speed robust"), ITERATIONS (1200) and TRAIN change the training.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
folder=$1
model=${SKIPPIPE_BUILD:-$PWD/build}/bin/skippipe-model
fortunes=/usr/share/games/fortunes
iterations=${ITERATIONS:-1200}
# A microbatch is one sequence and holds a whole question.
TRAIN=${TRAIN:---preset tiny --set dim=128 --set n_heads=4 --set n_kv_heads=2 --set ffn_dim=352 --set n_layers=12
	--set n_stages=6 --set batch=1 --set sequence=192 --grad-norm visits --microbatches 10 --set warmup=20
	--set lr=0.003 --set final_lr=0.1 --set schedule=cosine --validate-every 100}
mkdir -p "$folder"

if [ $# -ge 3 ]; then
	training=$2 held=$3
else
	training=$folder/training.txt held=$folder/held-out.txt
	for f in "$fortunes"/*; do
		case $f in *.*|*/ascii-art) ;; *) cat "$f" ;; esac
	done | awk -v training="$training" -v held="$held" '
		{ print > (entry % 5 == 4 ? held : training) }
		$0 == "%" { entry++ }'
fi

# Random numbers after Park and Miller (1988), because srand gives other numbers in each awk.
awk -v items=2000 '
	function draw(n) { state = state * 16807 % 2147483647; return state % n }
	# Draws a place where a word ends, between two texts of printable characters only.
	function draw_place(  at) {
		for (;;) {
			at = 128 + draw(length(text) - 192)
			if (substr(text, at - 127, 192) !~ /[^ -~\n\t]/ && substr(text, at, 2) ~ /[^ \n\t][ \n\t]/)
				return at
		}
	}
	function quoted(s) {
		gsub(/\\/, "&&", s)
		gsub(/"/, "\\\"", s)
		gsub(/\n/, "\\n", s)
		gsub(/\t/, "\\t", s)
		return "\"" s "\""
	}
	BEGIN { RS = "\001"; state = 34 }
	{ text = text $0 }
	END {
		if (length(text) < 100000) { print "downstream: the held-out text is too short" > "/dev/stderr"; exit 1 }
		for (i = 0; i < items; i++) {
			at = draw_place()
			answer = draw(4)
			list = ""
			for (k = 0; k < 4; k++) {
				other = at
				while (k != answer && substr(text, other + 1, 64) == substr(text, at + 1, 64))
					other = draw_place()
				list = list (k ? ", " : "") quoted(substr(text, other + 1, 64))
			}
			printf "{\"context\": %s, \"choices\": [%s], \"answer\": %d}\n", quoted(substr(text, at - 127, 128)), list, answer
		}
	}' "$held" >"$folder/items.jsonl"

sed 's/^{"context": "\(\\.\|[^"\\]\)*"/{"context": "x"/' "$folder/items.jsonl" >"$folder/alone.jsonl"

answer() { # answer NAME PART OPTION...: prints the shares of right answers
	local name=$1 part=$2
	shift 2
	"$model" eval "$folder/$name" --choices "$folder/items.jsonl" --format jsonl "$@" >"$folder/$name.$part.items"
	"$model" eval "$folder/$name" --choices "$folder/alone.jsonl" --format jsonl "$@" --set sequence=64 >"$folder/$name.$part.alone"
	awk -v name="$name" -v part="$part" '
		function field(key) { return match($0, "\"" key "\":[^]}\"]*") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) : "" }
		# Prints a share and its score interval (Wilson 1927).
		function share(right,  p, z, middle, half) {
			p = right / n
			z = 1.959964
			middle = (p + z * z / (2 * n)) / (1 + z * z / n)
			half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
			return sprintf("%.1f%% (%.1f to %.1f)", 100 * p, 100 * (middle - half), 100 * (middle + half))
		}
		field("line") == "" { next }
		NR == FNR { alone[FNR] = substr(field("losses"), 2); next }
		{
			n++
			split(substr(field("losses"), 2), after, ",")
			split(alone[FNR], before, ",")
			lowest = most = 1
			for (k = 2; k <= 4; k++) {
				if (after[k] + 0 < after[lowest] + 0) lowest = k
				if (after[k] - before[k] < after[most] - before[most]) most = k
			}
			loss += lowest == field("answer") + 1
			gain += most == field("answer") + 1
		}
		END { printf "%-10s %-6s loss %s  gain %s\n", name, part, share(loss), share(gain) }
	' "$folder/$name.$part.alone" "$folder/$name.$part.items"
}

for seed in ${SEEDS:-1}; do
	for run in ${RUNS:-full speed robust}; do
		name=$run-$seed
		recipe=()
		[ "$run" = full ] || recipe=(--recipe "$run")
		[ -e "$folder/$name/manifest.json" ] ||
			"$model" train $TRAIN "${recipe[@]}" --corpus "$training" --seed "$seed" --iterations "$iterations" \
				--set iterations="$iterations" --out "$folder/$name" --format jsonl >"$folder/$name.jsonl"
		answer "$name" whole
		answer "$name" half --omit-fraction 0.4 --always 0,5 # two of the four middle stages
	done
done
