#!/bin/bash
# Predicts the iteration times of the published instances, including the sums, in several formats:
#
#     bench/formats.sh [PLAN-OPTION...]      BUILD=build; --threads 1 --evaluations 500000
#
# The instances in schedule/tests/data give whole delays in fp32, without saying which part of a
# delay the bytes take. The script replaces the delays by the links of deploy/regions.json between
# the same places. It first checks that a plan takes the same time with the given delays and with
# delays computed from these links. Then it plans with the links, so that activations also wait for
# one another. Nodes are placed freely, and sums overlap. For each format the script prints total_s
# of DT-FM's plan and of ours, which skips a third of the stages (a quarter in geo18_s4).
set -eu -o pipefail
build=${BUILD:-build}
here=$(dirname "$0")/..
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ $# -gt 0 ] || set -- --threads 1 --evaluations 500000

# Prints the instance of FILE with links in place of its delays, or with delays computed from the links:
# by_links FILE ACTIVATION-BYTES [delays]
by_links() {
	sed 's/, "delay_s".*//' "$1"
	grep -o '"location": "[^"]*"' "$1" | awk -F'"' -v bytes="$2" -v delays="${3:-}" '
		# deploy/regions.json has one key on each line: this reads the links and the
		# overhead from it
		FILENAME != "-" && $2 == "latency_ms" { sub(/.*: /, ""); sub(/,.*/, ""); latency_s = $0 / 1000 }
		FILENAME != "-" && $2 == "bandwidth_gib_per_s" {
			sub(/.*: /, "")
			latency[a, b] = latency[b, a] = latency_s
			speed[a, b] = speed[b, a] = $0 * 2 ^ 30
		}
		FILENAME != "-" && $2 == "a" { a = $4 }
		FILENAME != "-" && $2 == "b" { b = $4 }
		FILENAME != "-" && $2 == "transfer_overhead_s" { sub(/.*: /, ""); overhead_s = $0 + 0 }
		FILENAME == "-" { place[n++] = $4 }
		function matrix(of, i, j, text) {
			for (i = 0; i < n; i++) {
				text = text (i ? ", [" : "[")
				for (j = 0; j < n; j++)
					text = text (j ? ", " : "") sprintf("%.17g", \
						place[i] == place[j] ? of["", ""] : of[place[i], place[j]])
				text = text "]"
			}
			return "[" text "]"
		}
		function delay(bytes, overhead_s, way) {
			for (way in latency) of[way] = latency[way] + bytes / speed[way] + overhead_s
			return matrix(of)
		}
		END {
			weights = 268468224
			if (delays) {
				printf ", \"delay_s\": %s, \"sync_pair_s\": %s}\n", delay(bytes, overhead_s), delay(weights, 0)
				exit
			}
			printf ", \"links\": {\"latency_s\": %s, \"bandwidth_bytes_per_s\": %s}, ", \
				matrix(latency), matrix(speed)
			printf "\"activation_bytes\": %s, \"transfer_overhead_s\": %s, ", bytes, overhead_s
			printf "\"weights_bytes_per_stage\": %d}\n", weights
		}' "$here/deploy/regions.json" -
}
# Prints a number of a plan: predicted KEY FILE
predicted() { sed -n "s/.*\"predicted\":{[^}]*\"$1\":\([0-9.]*\).*/\1/p" "$2"; }
# Prints total_s of a new plan: plan_s CLUSTER OPTION...
plan_s() {
	"$build/bin/skippipe" plan "$@" --assignment free --overlap-sync -o "$dir/plan" 2>"$dir/err" ||
		{ cat "$dir/err" >&2; exit 1; }
	predicted total_s "$dir/plan"
}
# Prints iteration_s and sync_s of the plan on a cluster.
judge() { "$build/bin/skippipe" simulate "$1" "$dir/plan" | grep -E '^(iteration|sync)_s'; }

echo "| | ours fp32 | 8 bits | 6 bits | DT-FM fp32 | 8 bits | 6 bits |"
echo "|---|---|---|---|---|---|---|"
while read -r name skip bytes; do
	given=$here/schedule/tests/data/$name.json links=$dir/$name.json row="| $name, $skip skipped |"
	by_links "$given" "$bytes" >"$links"
	by_links "$given" "$bytes" delays >"$dir/delays.json"
	plan_s "$given" --skip "$skip" --evaluations 1000 >"$dir/out"
	[ "$(judge "$given")" = "$(judge "$dir/delays.json")" ] || { echo "$name: the links are not the instance's" >&2; exit 1; }
	for how in "--skip $skip" "--skip 0 --algorithm dtfm"; do
		for format in fp32 q8 q6; do
			row+=" $(plan_s "$links" $how "$@" --wire $format --sum-wire $format | awk '{ printf "%.1f", $1 }') |"
		done
	done
	echo "$row"
done <<END
shipped20 2 33554648
geo20_s8 2 33554432
geo18_s4 1 16777216
END
