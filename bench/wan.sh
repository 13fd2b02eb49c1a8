#!/bin/bash
# Runs over a wide-area network (docs/testbed.md): bench/wan.sh [OPTION...] [-- CONTROLLER-OPTION...]
# The controller and the agents have a network namespace each, joined by the router of tests/wan. skippipe itself
# emulates nothing. The script prints the predicted and the measured times of each iteration, their medians and
# deviations, how often a node was declared dead, and the result of verify. Needs root.
#
#   --cluster FILE     the network, skippipe.cluster/1 with links; otherwise the 12 regions with:
#   --agents N --stages A,B,...        [20, 5,3,3,3,3,3]
#   --skip K --iterations K            [2, 30]
#   --compare          runs again with the controller's --algorithm dtfm, and prints the ratio
#   --pretend K        a rehearsal (docs/rehearsal.md): agents compute nothing, the 1.5B model takes 1/K of its bytes and
#                      the network has 1/K of its bandwidths. With --compare four runs: ours and DT-FM, in fp32 and in
#                      q6. Without --cluster, tasks take the published times: --compute 0.44,0.66,0.11. Queues hold
#                      1,000 ms of packets (--queue-ms 1000), because the same time holds K times fewer packets
#   --measure          only measures the links, and prints the errors
#   --console          opens the console, too
#   --limit-s S        ends a run that takes longer  [900]
#   --loss, --jitter, --seed, --controller-at, --queue-ms, --least-mbs, --up-mbs, --down-mbs, --activation-bytes,
#   --weights-bytes, --compute         options of the router (wan_router --help)
#
# With SKIPPIPE_KEEP=FOLDER the script copies the runs, their events and logs, and true.json there at the end.
. "$(dirname "$0")/../tests/lib.sh"
. tests/wan/bed.sh
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify ip awk
agents=20 stages=5,3,3,3,3,3 skip=2 iterations=30 limit=900 cluster='' compare='' measure='' console='' pretend=''
router=() how=() agent=()
while [ $# -gt 0 ]; do
	case $1 in
	--help) sed -n '2,23s/^# \{0,1\}//p' bench/wan.sh; exit 0 ;;
	--compare | --measure | --console) declare "${1#--}=yes"; shift; continue ;;
	--) shift; break ;;
	esac
	[ $# -gt 1 ] || die "$1: needs a value (see --help)"
	case $1 in
	--cluster) cluster=$2 ;;
	--agents | --stages | --skip | --iterations | --pretend) declare "${1#--}=$2" ;;
	--limit-s) limit=$2 ;;
	--loss | --jitter | --seed | --controller-at | --queue-ms | --least-mbs | --up-mbs | --down-mbs | \
		--activation-bytes | --weights-bytes | --compute) router+=("$1" "$2") ;;
	*) die "$1: unknown option (see --help)" ;;
	esac
	shift 2
done
if [ -n "$pretend" ]; then
	router=(--compute 0.44,0.66,0.11 --queue-ms 1000 --divide-bandwidth "$pretend" "${router[@]}")
	how=(--rehearse --scale-bytes "$pretend" --model 1.5b --checkpoint-every 0)
	agent=(--device pretend)
fi
if [ -n "$cluster" ]; then
	bed_start --cluster "$cluster" "${router[@]}"
	which=(--cluster "$cluster")
else
	bed_start --regions deploy/regions.json --agents "$agents" --stages "$stages" "${router[@]}"
	which=(--agents "$agents" --stages "$stages")
fi
bed_ask cluster >"$dir/true.json"
[ -z "$pretend" ] || which=(--cluster "${cluster:-$dir/true.json}")
echo "$bed_nodes nodes and a controller at ${bed_place[bed_nodes]}; the network: $bed_tools/wan_tool ask $dir/wan.sock help"

events='function value(key) {
		if (!match($0, "\"" key "\":[-+0-9.e]+")) return "-"
		return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
	}
	function sort(t, n,   i, k, x) { for (i = 2; i <= n; i++) { x = t[i]; for (k = i; k > 1 && t[k - 1] > x; k--) t[k] = t[k - 1]; t[k] = x } }
	function median(t, n) { sort(t, n); return n % 2 ? t[(n + 1) / 2] : (t[n / 2] + t[n / 2 + 1]) / 2 }
	function away(p, v) { return (p > v ? p - v : v - p) / v }
	function cell(c, v) { printf(c == 3 ? " %16s" : " %12s", v == "-" ? v : sprintf("%.3f", v)) }
	BEGIN { split("predicted_s iteration_s predicted_sync_s sync_s real_s", column) }'
heading() { printf '%6s %12s %12s %16s %12s %12s %6s %6s\n' n predicted_s iteration_s predicted_sync_s sync_s real_s alive rerun; }

# Prints the iterations after the first SHOWN: iterations_after EVENTS SHOWN
iterations_after() {
	awk -v shown="$2" "$events"'
		/^{"event":"iteration"/ && ++n > shown {
			printf "%6s", value("n")
			for (c = 1; c <= 5; c++) cell(c, value(column[c]))
			printf " %6s %6s\n", value("nodes_alive"), value("rerun")
		}' "$1"
}
summary() { # summary EVENTS: prints medians, deviations and errors of the predictions
	awk "$events"'
		/^{"event":"iteration"/ {
			for (c = 1; c <= 5; c++) if ((v = value(column[c])) != "-") { t[c, ++n[c]] = v; sum[c] += v; squares[c] += v * v }
			if (value(column[2]) != "-" && value(column[1]) > 0) off[++m] = value(column[2]) / value(column[1])
			for (k = 1; k <= 3; k += 2) if (value("n") + 0 > 1 && value(column[k]) > 0 && value(column[k + 1]) > 0)
				miss[k, ++missed[k]] = away(value(column[k]), value(column[k + 1]))
			if (value("n") == 2 && value(column[2]) > 0) second = away(value(column[1]), value(column[2]))
		}
		/^{"event":"node"/ && /"state":"dead"/ { dead++ }
		/^{"event":"node"/ && /"state":"suspect"/ { suspect++ }
		/^{"event":"commit"/ { commits++ }
		END {
			printf "%6s", "median"
			for (c = 1; c <= 5; c++) { for (i = 1; i <= n[c]; i++) x[i] = t[c, i]; cell(c, n[c] ? median(x, n[c]) : "-") }
			printf "\n%6s", "dev."
			for (c = 1; c <= 5; c++) { v = n[c] > 1 ? (squares[c] - sum[c] * sum[c] / n[c]) / (n[c] - 1) : -1; cell(c, n[c] > 1 ? sqrt(v > 0 ? v : 0) : "-") }
			if (m) printf "\niterations took %.2f times the predicted time (median)", median(off, m)
			if (second != "") printf "\nin the second iteration the prediction is off by %.1f%%", 100 * second
			for (k = 1; k <= 3; k += 2) if (missed[k]) {
				for (i = 1; i <= missed[k]; i++) x[i] = miss[k, i]
				printf k == 1 ? "; after the first by %.1f%% (median)" : ", of the sum by %.1f%%", 100 * median(x, missed[k])
			}
			printf "\n%d commits; %d times a node was declared dead, %d times suspected\n", commits, dead, suspect
		}' "$1"
}

# Waits for the agents to end, as they do when the controller ends, and kills the agents that do
# not end.
end_agents() {
	local n
	for n in "${bed_agent_pid[@]}"; do
		for _ in $(seq 50); do kill -0 "$n" 2>/dev/null || break; sleep 0.1; done
		kill "$n" 2>/dev/null
		wait "$n"
	done
	started=()
}
run() { # run NAME OPTION...: runs a cluster to its end, with its record in $dir/NAME and its events in $dir/NAME.events
	local name=$1 shown=0 new status end=$((SECONDS + limit))
	shift
	echo "== $name"
	bed_controller "${which[@]}" --skip "$skip" --iterations "$iterations" "${how[@]}" "$@"
	bed_agents "${agent[@]}"
	heading
	[ -z "$console" ] || { until grep -q '"event":"plan"' "$dir/events" || ! kill -0 $bed_controller_pid; do sleep 0.2; done; bed_console; }
	while kill -0 $bed_controller_pid 2>/dev/null; do
		[ $SECONDS -lt $end ] || { echo "ended after $limit s"; kill $bed_controller_pid; break; }
		new=$(iterations_after "$dir/events" $shown)
		[ -z "$new" ] || { echo "$new"; shown=$((shown + $(wc -l <<<"$new"))); }
		sleep 1
	done
	wait $bed_controller_pid
	status=$?
	iterations_after "$dir/events" $shown
	[ $status = 0 ] || [ $SECONDS -ge $end ] || die "controller: exit status $status"
	end_agents
	summary "$dir/events"
	if "$bin/skippipe" verify "$dir/run" --format json >"$dir/verify.out" 2>"$dir/verify.err"; then
		echo "verify: the same bits, $(field committed <"$dir/verify.out") iterations"
	else
		echo "verify: NOT proved: $(tail -n 1 "$dir/verify.err") $(cut -c 1-300 "$dir/verify.out")"
	fi
	bed_ask stats | head -n 1
	mv "$dir/run" "$dir/$name" && mv "$dir/events" "$dir/$name.events" && mv "$dir/controller.err" "$dir/$name.err"
}

# compare_links TRUE MEASURED: compares every measured link with the true link. Prints the error of the latency, and the
# ratios of measured to true bandwidths and delays of an activation.
compare_links() {
	awk "$events"'
		function matrix(key, M,   s, rows, r, i, j, f) {
			s = substr($0, index($0, "\"" key "\":[[") + length(key) + 5)
			r = split(substr(s, 1, index(s, "]]") - 1), rows, /\],\[/)
			for (i = 1; i <= r; i++) { split(rows[i], f, ","); for (j = 1; j <= r; j++) M[i, j] = f[j] }
			return r
		}
		FNR == NR { N = matrix("latency_s", L); matrix("bandwidth_bytes_per_s", B); next }
		FNR == 1 { matrix("latency_s", l); matrix("bandwidth_bytes_per_s", b); bytes = value("activation_bytes") }
		function ratio(what, t, n,   m) { m = median(t, n); printf "%-40s median %.3f, from %.3f to %.3f\n", what, m, t[1], t[n] }
		END {
			for (i = 1; i <= N; i++) for (j = 1; j <= N; j++) if (i != j && L[i, j] != "null") {
				if (l[i, j] == "null" || l[i, j] == "" || l[i, j] < 0) { missing++; continue }
				e[++n] = 1e3 * (l[i, j] - L[i, j])
				w[n] = b[i, j] / B[i, j]
				d[n] = (l[i, j] + bytes / b[i, j]) / (L[i, j] + bytes / B[i, j])
				near += e[n] <= 5 + 100 * L[i, j] && -e[n] <= 5 + 100 * L[i, j]
				if (B[i, j] >= 50e6) continue
				slow++
				right += w[n] >= 0.75 && w[n] <= 1.25
			}
			printf "%d links measured, %d not\n", n, missing
			if (!n) exit
			printf "latencies within 5 ms + 10%%: %d of %d, %.1f%%\n", near, n + missing, 100 * near / (n + missing)
			if (slow) printf "bandwidths below 50 MB/s within 25%%: %d of %d, %.1f%%\n", right, slow, 100 * right / slow
			ratio("latency, ms too long", e, n)
			ratio("bandwidth, measured over true", w, n)
			ratio("delay of " bytes " bytes, measured over true", d, n)
		}' "$1" "$2"
}

if [ -n "$measure" ]; then
	bed_controller "${which[@]}" --measure-only "${how[@]}" "$@"
	bed_agents "${agent[@]}"
	wait $bed_controller_pid || die "controller: exit status $?"
	end_agents
	grep -h 'measured in' "$dir/controller.err" | sed 's/.*controller: //'
	awk '/listening at|the run ends/ { split($1, t, ":"); at[++n] = t[1] * 3600 + t[2] * 60 + t[3] }
		END { if (n == 2) printf "from the start of the controller to its end: %.1f s\n", at[2] - at[1] + (at[2] < at[1]) * 86400 }' "$dir/controller.err"
	compare_links "$dir/true.json" "$dir/run/cluster.json"
	exit 0
fi
if [ -n "$pretend" ] && [ -n "$compare" ]; then
	for format in fp32 q6; do
		run "dtfm-$format" "$@" --wire $format --sum-wire $format --skip 0 --algorithm dtfm
		run "ours-$format" "$@" --wire $format --sum-wire $format
	done
	echo "== an iteration and its sums, seconds: medians without the first iteration"
	printf '%10s %9s %10s %21s %21s %14s\n' run measured predicted "measured/predicted" "less than dtfm-fp32" "than its dtfm"
	for name in dtfm-fp32 ours-fp32 dtfm-q6 ours-q6; do
		awk -v name=$name "$events"'
			/^{"event":"iteration"/ && value("n") + 0 > 1 {
				took[++n] = value("iteration_s") + value("sync_s")
				said[n] = value("predicted_s") + value("predicted_sync_s")
			}
			END { if (n) printf "%s %.3f %.3f\n", name, median(took, n), median(said, n) }' "$dir/$name.events"
	done | awk '{
		took[$1] = $2
		own = $1
		sub(/ours/, "dtfm", own)
		printf "%10s %9.1f %10.1f %21.2f %21s %14s\n", $1, $2, $3, $2 / $3, less($2, "dtfm-fp32"), less($2, own)
	}
	function less(v, than) { return than in took ? sprintf("%.0f%%", 100 * (1 - v / took[than])) : "-" }'
	exit 0
fi
run run-planned "$@"
[ -n "$compare" ] || exit 0
run run-dtfm "$@" --skip 0 --algorithm dtfm # straight pipelines visit every stage
awk "$events"'
	BEGIN { print "== an iteration and its sums, seconds: dtfm, planned, ratio" }
	FNR == 1 { file++ }
	/^{"event":"iteration"/ { took[file, value("n")] = value("iteration_s") + value("sync_s"); most = value("n") + 0 > most ? value("n") + 0 : most }
	END {
		for (i = 1; i <= most; i++) {
			if (!((1, i) in took) || !((2, i) in took) || took[1, i] <= 0) continue
			r[++n] = took[2, i] / took[1, i]
			printf "%6d %8.3f %8.3f %8.2f\n", i, took[2, i], took[1, i], r[n]
		}
		if (n) printf "median %.2f, of %d iterations\n", median(r, n), n
	}' "$dir/run-planned.events" "$dir/run-dtfm.events"
