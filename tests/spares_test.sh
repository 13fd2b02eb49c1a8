#!/bin/bash
# A run with --agents MIN..MAX begins with MIN agents and gives further agents a place when they join. A late node that
# does not shorten an iteration waits as a spare, and takes the place of a killed node in the next iteration. A node
# that failed three times is used last, and in the next run with the same list of keys, too. A controller that resumes
# the run keeps the spare in reserve.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
sk=$bin/skippipe
for who in controller 0 1 2 3 4 5; do "$sk" keygen "$dir/$who.key" >"$dir/$who.pub" || die keygen; done
for i in 0 1 2 3 4 5; do
	"$sk" admit "$dir/admitted" "$(cat "$dir/$i.pub")" --role agent --name "agent$i" >/dev/null || die admit
done
begin() { # begin NAME AGENTS OPTION...: starts the controller
	local name=$1 agents=$2
	shift 2
	events=$dir/$name.events
	"$sk" controller --run-dir "$dir/$name" --listen "ipc://$dir/c" --key "$dir/controller.key" --admitted "$dir/admitted" \
		--agents "$agents" --skip 0 --eval-every 0 --format jsonl "$@" >"$events" 2>"$dir/controller.err" &
	controller=$!
	started+=($controller)
}
begin_again() { # begin_again NAME OPTION...: starts a controller that resumes the run
	events=$dir/$1.again.events
	"$sk" controller --resume "$dir/$1" --listen "ipc://$dir/c" --key "$dir/controller.key" --admitted "$dir/admitted" \
		--format jsonl "${@:2}" >"$events" 2>"$dir/controller.err" &
	controller=$!
	started+=($controller)
}
agent() { # agent N [NODE]: starts agent N, which asks for this node
	"$sk" agent --join "ipc://$dir/c" --controller-key "$dir/controller.pub" --key "$dir/$1.key" --listen "ipc://$dir/$1" \
		${2:+--node "$2"} 2>"$dir/agent$1.err" &
	pids[$1]=$!
	started+=($!)
}
node_of() { # prints the node of agent N
	grep "\"event\":\"node\".*\"name\":\"agent$1\"" "$events" | field node | tail -n 1
}
state() { # state N STATE: succeeds if this is the newest state of agent N
	grep "\"event\":\"node\".*\"name\":\"agent$1\"" "$events" | tail -n 1 | grep -q "\"state\":\"$2\""
}
until_state() { # until_state N STATE: waits until agent N is in this state
	local end=$((SECONDS + 60))
	until state "$1" "$2"; do [ $SECONDS -lt $end ] || die "agent $1 is not $2"; sleep 0.1; done
}
newest() { grep '"event":"commit"' "$events" | field n | tail -n 1; }
further() { wait_for "$events" $(($(newest) + $1)) $controller 60; }
newest_plan_uses() { # newest_plan_uses NODE: succeeds if the newest plan uses the node
	grep '"event":"plan"' "$events" | tail -n 1 | sed 's/.*"assignment":\(\[\[.*\]\]\),"path_length".*/\1/' |
		grep -qE "[][,]$1[],]"
}
used_again() { # on a busy machine, measured times may suggest that agent 5 would make an iteration much shorter
	grep -q '(agent5), which failed 3 times, is used again: ' "$dir/controller.err"
}
early=
used_early() { # used_early N: on a busy machine, measured times may suggest that an iteration is shorter with spare N
	if grep -q ' times as long as planned' "$dir/controller.err" &&
		grep -q "n0$1 (.*), a spare of S.*, is used: an iteration is shorter with it" "$dir/controller.err"; then
		early=$early$1
	fi
	case $early in *$1*) return 0 ;; *) return 1 ;; esac
}
stop() {
	kill -TERM $controller
	wait $controller || die "controller: exit status $?"
	wait "${pids[@]}" 2>/dev/null
	pids=()
}

pids=()
begin few 4..6 --stages 2,2,2 --time-scale 0 --gather-s 2 --iterations 5
agent 0
wait $controller && die "a run began with fewer agents than it needs"
grep -q '1 agents came in 2 s (--gather-s), and --agents needs 4' "$dir/controller.err" || die "no reason"
wait "${pids[@]}"

# The node of S0 needs forty times as long as the other nodes, and is the only node of its stage, so its microbatches
# never meet in S1 and S2. Further nodes of S1 and S2 therefore do not shorten an iteration.
square() { # square DIAGONAL OTHER: prints a 5 x 5 matrix
	local i k
	for i in 0 1 2 3 4; do
		for k in 0 1 2 3 4; do [ $i = $k ] && echo "$1" || echo "$2"; done | paste -sd,
	done | sed 's/.*/[&]/' | paste -sd,
}
node_json() { # node_json ID STAGE SECONDS: prints a node whose passes take SECONDS
	echo "{\"id\": $1, \"stage\": $2, \"location\": \"here\", \"memory\": 4, \"loss_s\": 0.1,"
	echo " \"forward_s\": $3, \"backward_s\": $3}"
}
cat >"$dir/slow.json" <<END
{"format": "skippipe.cluster/1", "name": "slow", "stages": [1, 2, 2], "nodes": [
$(node_json 0 0 0.4),$(node_json 1 1 0.01),$(node_json 2 2 0.01),$(node_json 3 1 0.01),$(node_json 4 2 0.01)],
 "links": {"latency_s": [$(square 0 0.005)], "bandwidth_bytes_per_s": [$(square 0 1e9)]}, "activation_bytes": 1000,
 "transfer_overhead_s": 0, "weights_bytes_per_stage": 51200, "microbatches_per_data_node": 2}
END
pids=()
begin reserve 3..5 --emulate "$dir/slow.json" --assignment given --time-scale 1 --batch 1 --sequence 16 --gather-s 3 \
	--iterations 100000
for i in 0 1 2; do agent $i $i; done
wait_for "$events" 2 $controller 60
agent 3 3
agent 4 4
until_state 3 live
until_state 4 live
further 2
for i in 3 4; do
	grep "\"event\":\"node\",\"node\":$i,.*\"state\":\"live\",\"why\":\"spare: " "$events" >"$dir/spare" ||
		die "the record does not say that node $i waits as a spare"
	newest_plan_uses $i && ! used_early $i && die "the plan uses the spare $i"
done
kill -KILL "${pids[1]}"
until_state 1 dead
committed=$(grep '"event":"node","node":1,.*"state":"dead"' "$events" | field iteration)
further 2
sed '1,/"event":"node","node":1,.*"state":"dead"/d' "$events" | grep '"event":"plan"' | head -n 1 >"$dir/plan"
grep -q '"path":\[0,3,2\]' "$dir/plan" || die "the next plan does not use node 3"
[ "$(field iteration <"$dir/plan" | head -n 1)" -le $((committed + 2)) ] ||
	die "node 3 does not compute in the iteration after it$((committed + 1)), in which node 1 died"
newest_plan_uses 4 && ! used_early 4 && die "the plan uses the spare of another stage"

# The controller is killed and started again. Agent 4 waits as a spare as before, until agent 2 dies.
used_early 4 || : # the next controller writes a new log
kill -KILL $controller
wait $controller 2>/dev/null
committed=$(newest)
begin_again reserve --iterations 100000
wait_for "$events" $((committed + 3)) $controller 60
used_early 4 || grep '"event":"node","node":4,.*"state":"live","why":"spare: ' "$events" >"$dir/spare" ||
	die "agent 4 is no spare after the restart"
grep '"event":"plan"' "$events" >"$dir/plan" || die "no plan after the restart"
grep -qE '"path":\[[0-9,]*4' "$dir/plan" && ! used_early 4 && die "a plan after the restart uses the spare"
kill -KILL "${pids[2]}"
until_state 2 dead
further 2
grep '"event":"plan"' "$events" | tail -n 1 | grep -q '"path":\[0,3,4\]' || die "agent 4 does not take the place of agent 2"
check_verify "$dir/reserve" 5
stop

pids=()
begin grow 4..6 --stages 2,2,2 --time-scale 0 --gather-s 3 --iterations 100000
for i in 0 1 2 3; do agent $i; done
wait_for "$events" 2 $controller 60
agent 4
agent 5
until_state 4 live
until_state 5 live
further 3
[ "$(grep '"event":"iteration"' "$events" | field nodes_alive | tail -n 1)" = 6 ] || die "not all agents take part"
slots() { sed -n 's/.* welcome: .*, \([0-9]*\) slots.*/\1/p' "$dir/agent$1.err" | tail -n 1; }
[ "$(slots 4)" = "$(slots 0)" ] || die "agent 4, which joined late, has $(slots 4) slots, and agent 0 $(slots 0)"

# Agent 5 fails three times. The other replica of its stage then does the work of agent 5.
for _ in 1 2 3; do
	kill -KILL "${pids[5]}"
	until_state 5 dead
	further 1
	agent 5
	until_state 5 live
done
grep -qE 'n0[0-9] \(agent5\) has failed 3 times' "$dir/controller.err" || die "the journal does not name the node"
grep '"event":"node".*"name":"agent5"' "$events" | tail -n 1 | grep -q 'used last: failed 3 times' ||
	die "the reason is not shown"
further 3
newest_plan_uses "$(node_of 0)" || die "the plan does not use agent 0"
newest_plan_uses "$(node_of 5)" && ! used_again && die "the plan uses agent 5"
check_verify "$dir/grow" 4
stop

begin again 6 --stages 2,2,2 --time-scale 0 --iterations 100000
for i in 0 1 2 3 4 5; do agent $i; done
wait_for "$events" 4 $controller 60
grep '"event":"node".*"name":"agent5"' "$events" | tail -n 1 | grep -q 'used last: failed 3 times' ||
	die "the next run does not know about the failures"
newest_plan_uses "$(node_of 5)" && ! used_again && die "the plan of the next run uses agent 5"
stop
exit 0
