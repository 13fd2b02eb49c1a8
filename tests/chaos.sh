#!/bin/bash
# Many faults: tests/chaos.sh ITERATIONS [SEED] [emulated]. Every fourth iteration has a fault, at the speed of the
# machine. With `emulated`, an iteration takes 2.5 s and there is a fault every two seconds; the script then compares
# the speed with that of a run without faults.
#
# The faults: kill -9; SIGSTOP and SIGCONT; a hang; a slow node; slow, lossy or cut links; a node that sends numbers
# that are not finite; a killed controller. Lost nodes return a few iterations later. The seed alone determines the
# faults and their times, with one exception: like an operator, the script does not kill the last replica of a stage.
#
# At the end every iteration is committed once, except iterations that the loss of a whole stage has undone. The weights
# equal bit for bit those that one process computes from the record. No process is left. CHAOS_ARGS are options for
# `skippipe demo`.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
iterations=${1:-100} RANDOM=${2:-1} pace=${3:-}
events=$dir/events run=$dir/run
args=(--headless --format jsonl --eval-every 20) tenths=40 # time between two faults, in tenths of an iteration
[ "$pace" = emulated ] && tenths=8 || args+=(--time-scale 0)
read -r -a more <<<"${CHAOS_ARGS:-}"

# ---- the schedule of faults
acts=() outside=()
for ((at = 40; at < (iterations - 6) * 10; at += 1 + RANDOM % (2 * tenths))); do
	node=$((RANDOM % 20)) n=$((at / 10)) back=$((at / 10 + 4)) moment=$((RANDOM % 20))
	case $((RANDOM % 10)) in
	0 | 1) outside+=("$n kill $node $moment"); acts+=(--at "$back:recover:$node") ;;
	2) acts+=(--at "$n:kill:$node" --at "$back:recover:$node") ;;
	3) outside+=("$n stop $node $moment") ;;
	4) acts+=(--at "$n:hang:$node") ;;
	5) acts+=(--at "$n:slow-node:$node") ;;
	6) acts+=(--at "$n:slow-link:$node") ;;
	7) acts+=(--at "$n:loss:$node" --at "$((n + 1)):partition:$(((node + 7) % 20))") ;;
	8) acts+=(--at "$n:corrupt:$node" --at "$back:recover:$node") ;;
	9) outside+=("$n controller 0 $moment") ;;
	esac
done

# ---- the state of the run, from its events
committed() { grep -s '"event":"commit"' "$events" | tail -n 1 | field n; }
controller_pid() { sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1; }
# Succeeds if another node of the node's stage is live.
spare() {
	grep '"event":"node"' "$events" | sed 's/.*"node":\([0-9]*\),"stage":\([-0-9]*\),"state":"\([a-z]*\)".*/\1 \2 \3/' |
		awk -v node="$1" '{ stage[$1] = $2; state[$1] = $3 }
			END { for (i in stage) if (i != node && stage[i] == stage[node] && state[i] == "live") n++; exit n < 2 }'
}
resident() { # prints the memory in kB of the controller, and of the largest agent
	local pid
	for pid in $(controller_pid); do sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\).*/controller \1/p' "/proc/$pid/status"; done
	for pid in $(seq 0 19); do
		pid=$(agent_pid "$run" "$pid")
		sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\).*/agent \1/p' "/proc/$pid/status"
	done 2>/dev/null | sort -k2n | tail -n 1
}
seconds_of() { # prints the mean time of an iteration from the first commit to the last
	awk -v from="$1" -v to="$2" -v n="$3" 'BEGIN { printf "%.3f\n", (to - from) / n }'
}
now() { printf '%s\n' "$EPOCHREALTIME"; }
begin() { # begin ITERATIONS ARGS...: starts a demo whose events do not contain the plans
	local n=$1
	shift
	rm -f "$events"
	"$bin/skippipe" demo "${args[@]}" --iterations "$n" --run-dir "$run" "${more[@]}" "$@" 2>"$dir/demo.err" \
		> >(grep --line-buffered -v '"event":"plan"' >"$events") &
	demo=$!
	started+=($demo)
	last=$SECONDS before=
}
until_committed() { # until_committed N: waits for this commit; returns 1 if the run ends before it
	local at
	until at=$(committed) && [ "${at:-0}" -ge "$1" ]; do
		kill -0 $demo 2>/dev/null || return 1
		[ "$at" = "$before" ] || { before=$at; last=$SECONDS; }
		[ $((SECONDS - last)) -lt 120 ] || die "no commit for two minutes after ${before:-0}"
		sleep 0.1
	done
}

# ---- a run without faults, for comparison
if [ "$pace" = emulated ]; then
	calm=30
	begin $calm
	until_committed 3 && from=$(now)
	wait $demo || die "demo without faults: exit status $?"
	calm_s=$(seconds_of "$from" "$(now)" $((calm - 3)))
	rm -rf "$run"
	started=()
fi

# ---- the run with faults
begin "$iterations" "${acts[@]}"
spared=0 done_outside=0
until_committed 3 && from=$(now) small=$(resident)
for fault in "${outside[@]}"; do
	read -r n what node moment <<<"$fault"
	until_committed "$n" || break
	sleep "$((moment / 10)).$((moment % 10))"
	if [ "$what" != controller ] && ! spare "$node"; then
		spared=$((spared + 1))
		continue
	fi
	done_outside=$((done_outside + 1))
	case $what in
	kill) kill -KILL "$(agent_pid "$run" "$node")" 2>/dev/null ;;
	stop) pid=$(agent_pid "$run" "$node")
	      kill -STOP "$pid" 2>/dev/null
	      (sleep 2; kill -CONT "$pid" 2>/dev/null) & ;;
	controller) kill -KILL "$(controller_pid)" 2>/dev/null ;;
	esac
done
until_committed $((iterations - 1)) && large=$(resident)
wait $demo || die "demo: exit status $?"
storm_s=$(seconds_of "$from" "$(now)" $((iterations - 3)))
started=()

# ---- the result
echo "$done_outside faults from outside ($spared spared), $(grep -c '"active":true\|"kind":"kill"' "$events") acts; $(grep -c 'controller started' "$run/log/demo.log") controllers, $(grep -c 'agent .* started' "$run/log/demo.log") agents started"
echo "resident kB: after 3 iterations" $small ", before the last" ${large:-?}
# If the last two replicas of a stage die at the same moment, the run returns to a checkpoint, and the log reports this.
back=$(grep -c "the run goes back from" "$run/log/controller.log")
[ "$back" = 0 ] || echo "the run went back to a checkpoint $back times"
[ "$back" != 0 ] || ! grep '"event":"commit"' "$events" | field n | sort -n | uniq -d | grep . || die "committed twice"
check_verify "$run" 20
[ "$(field committed <"$dir/verify.json")" = "$iterations" ] ||
	die "$(field committed <"$dir/verify.json") commits of $iterations"
check_gone "$run"
# Computes the duration that the faults justify. Lost capacity is the repeated work, the absent nodes, and three
# quarters of each slowed node. The predictions of the plans contain the effect on the pipeline: if one of three nodes
# of a stage is lost, each of the two others has 1.5 times its former work. If the plan without a dead node predicts a
# longer time, the iteration in which the node died counts with this prediction. The time of the sums is taken from the
# first iteration.
[ "$pace" = emulated ] && grep '"event":"iteration"\|"kind":"slow-node"' "$events" | awk -v calm="$calm_s" -v storm="$storm_s" '
	function value(key) { match($0, "\"" key "\":[0-9.]+"); return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) }
	{ at = value("at_s"); if (at < before) delete slow; before = at } # time starts again with a new controller
	/"active":true/ { slow[value("node")]; next }
	/"active":false/ { delete slow[value("node")]; next }
	{ alive += value("nodes_alive"); again += value("tasks_again"); tasks += value("tasks"); n++ }
	{ plan = value("predicted_s"); said += died && plan > last ? plan : last }
	{ last = plan; died = value("rerun") > 0 }
	n == 1 { first = plan; sum = value("sync_s") }
	{ for (i in slow) alive -= 0.75 }
	END {
		said += last
		longer = (said / n + sum) / (first + sum)
		raw = calm / storm; lost = again / tasks; here = alive / n / 20
		printf "an iteration: %.2f s, without faults %.2f s: %.0f%% of the speed\n", storm, calm, 100 * raw
		printf "computed again %.1f%%, of the nodes there %.1f%%: net of both %.0f%%\n", 100 * lost, 100 * here, 100 * raw / (1 - lost) / here
		printf "by plan those take %.0f%% longer: net of that and of what was computed again %.0f%%\n", 100 * (longer - 1), 100 * raw / (1 - lost) * longer
	}'
exit 0
