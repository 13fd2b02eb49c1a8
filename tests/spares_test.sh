#!/bin/bash
# A run with --agents MIN..MAX begins with MIN agents and gives the others a place when they join. A node that failed three
# times is used last, and in the next run with the same list of keys, too.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
sk=$bin/skippipe
for who in controller 0 1 2 3 4 5; do "$sk" keygen "$dir/$who.key" >"$dir/$who.pub" || die keygen; done
for i in 0 1 2 3 4 5; do
	"$sk" admit "$dir/admitted" "$(cat "$dir/$i.pub")" --role agent --name "agent$i" >/dev/null || die admit
done
begin() { # begin NAME AGENTS OPTION...: the controller
	local name=$1 agents=$2
	shift 2
	events=$dir/$name.events
	"$sk" controller --run-dir "$dir/$name" --listen "ipc://$dir/c" --key "$dir/controller.key" --admitted "$dir/admitted" \
		--agents "$agents" --skip 0 --eval-every 0 --time-scale 0 --format jsonl "$@" >"$events" 2>"$dir/controller.err" &
	controller=$!
	started+=($controller)
}
agent() { # agent N
	"$sk" agent --join "ipc://$dir/c" --controller-key "$dir/controller.pub" --key "$dir/$1.key" --listen "ipc://$dir/$1" \
		2>"$dir/agent$1.err" &
	pids[$1]=$!
	started+=($!)
}
node_of() { # the node of agent N
	grep "\"event\":\"node\".*\"name\":\"agent$1\"" "$events" | field node | tail -n 1
}
state() { # state N STATE: the newest state of agent N
	grep "\"event\":\"node\".*\"name\":\"agent$1\"" "$events" | tail -n 1 | grep -q "\"state\":\"$2\""
}
until_state() { # until_state N STATE
	local end=$((SECONDS + 60))
	until state "$1" "$2"; do [ $SECONDS -lt $end ] || die "agent $1 is not $2"; sleep 0.1; done
}
newest() { grep '"event":"commit"' "$events" | field n | tail -n 1; }
further() { wait_for "$events" $(($(newest) + $1)) $controller 60; }
newest_plan_uses() { # newest_plan_uses NODE
	grep '"event":"plan"' "$events" | tail -n 1 | sed 's/.*"assignment":\(\[\[.*\]\]\),"path_length".*/\1/' |
		grep -qE "[][,]$1[],]"
}
used_again() { # on a busy machine the measured times may say that an iteration is much shorter with agent 5
	grep -q '(agent5), which failed 3 times, is used again: ' "$dir/controller.err"
}
stop() {
	kill -TERM $controller
	wait $controller || die "controller: exit status $?"
	wait "${pids[@]}" 2>/dev/null
	pids=()
}

pids=()
begin few 4..6 --stages 2,2,2 --gather-s 2 --iterations 5
agent 0
wait $controller && die "a run began with fewer agents than it needs"
grep -q '1 agents came in 2 s (--gather-s), and --agents needs 4' "$dir/controller.err" || die "no reason"
wait "${pids[@]}"

pids=()
begin grow 4..6 --stages 2,2,2 --gather-s 3 --iterations 100000
for i in 0 1 2 3; do agent $i; done
wait_for "$events" 2 $controller 60
agent 4
agent 5
until_state 4 live
until_state 5 live
further 3
[ "$(grep '"event":"iteration"' "$events" | field nodes_alive | tail -n 1)" = 6 ] || die "not all agents take part"

# Agent 5 fails three times. Its stage has another replica, which does the work from then on.
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

begin again 6 --stages 2,2,2 --iterations 100000
for i in 0 1 2 3 4 5; do agent $i; done
wait_for "$events" 4 $controller 60
grep '"event":"node".*"name":"agent5"' "$events" | tail -n 1 | grep -q 'used last: failed 3 times' ||
	die "the next run does not know about the failures"
newest_plan_uses "$(node_of 5)" && ! used_again && die "the plan of the next run uses agent 5"
stop
exit 0
