#!/bin/bash
# A storm: tests/chaos.sh ITERATIONS SEED. About every fourth iteration (some two seconds) a fault:
# kill -9, SIGSTOP and SIGCONT, a hang, a slow node, slow or lossy or cut links, a node that sends
# what is not finite, the controller killed. Lost nodes come back a few iterations later.
#
# At the end every iteration is committed once, the weights are bit for bit what one process
# computes from the record, and no process is left. The choice of faults depends on the seed alone.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
iterations=${1:-100} RANDOM=${2:-1}
events=$dir/events run=$dir/run
acts=() outside=()

for ((n = 4; n < iterations - 8; n += 2 + RANDOM % 5)); do
	node=$((RANDOM % 20))
	case $((RANDOM % 10)) in
	0 | 1) outside+=("$n kill $node"); acts+=(--at "$((n + 7)):recover:$node") ;;
	2) acts+=(--at "$n:kill:$node" --at "$((n + 6)):recover:$node") ;;
	3) outside+=("$n stop $node") ;;
	4) acts+=(--at "$n:hang:$node") ;;
	5) acts+=(--at "$n:slow-node:$node") ;;
	6) acts+=(--at "$n:slow-link:$node") ;;
	7) acts+=(--at "$n:loss:$node" --at "$((n + 1)):partition:$(((node + 7) % 20))") ;;
	8) acts+=(--at "$n:corrupt:$node" --at "$((n + 6)):recover:$node") ;;
	9) outside+=("$n controller 0") ;;
	esac
done

"$bin/skippipe" demo --headless --format jsonl --iterations "$iterations" --time-scale 0 --eval-every 20 \
	--run-dir "$run" "${acts[@]}" >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
committed() { grep '"event":"commit"' "$events" | tail -n 1 | field n; }
controller_pid() { sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1; }
last=$SECONDS before=
for fault in "${outside[@]}"; do
	read -r n what node <<<"$fault"
	until [ "$(committed || true)" -ge "$n" ] 2>/dev/null; do
		kill -0 $demo 2>/dev/null || break 2
		[ "$(committed)" = "$before" ] || { before=$(committed); last=$SECONDS; }
		[ $((SECONDS - last)) -lt 60 ] || die "no commit for a minute after ${before:-0}"
		sleep 0.1
	done
	case $what in
	kill) kill -KILL "$(agent_pid "$run" "$node")" 2>/dev/null ;;
	stop) pid=$(agent_pid "$run" "$node")
	      kill -STOP "$pid" 2>/dev/null
	      (sleep 2; kill -CONT "$pid" 2>/dev/null) & ;;
	controller) kill -KILL "$(controller_pid)" 2>/dev/null ;;
	esac
done
wait $demo || die "demo: exit status $?"
started=()

echo "${#outside[@]} faults from outside, $((${#acts[@]} / 2)) acts; $(grep -c 'controller started' "$run/log/demo.log") controllers, $(grep -c 'agent .* started' "$run/log/demo.log") agents started"
grep '"event":"commit"' "$events" | field n | sort -n | uniq -d | grep . && die "committed twice"
check_verify "$run" 20
[ "$(field committed <"$dir/verify.json")" = "$iterations" ] ||
	die "$(field committed <"$dir/verify.json") commits of $iterations"
check_gone "$run"
