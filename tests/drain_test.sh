#!/bin/bash
# SIGTERM tells an agent to leave: the run continues without it, none of its work is repeated, and it ends with status
# 0. The last replica of a stage first hands the stage over to another node, even during a pause. If SIGTERM reaches all
# processes at once, the last commit is kept. A second signal, and the end of the notice (--notice-s), end an agent at
# once.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/six_agents.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify skippipe-console
terminal drain
sk=$bin/skippipe
six_keys

said() { # said EVENTS NODE STATE: succeeds if the events report this state of the node
	grep -q "\"event\":\"node\",\"node\":$2,.*\"state\":\"$3\"" "$1"
}
ended() { # ended AGENT SECONDS: waits until the agent ends, and checks that its exit status is 0
	for _ in $(seq $(($2 * 10))); do kill -0 "${agents[$1]}" 2>/dev/null || break; sleep 0.1; done
	kill -0 "${agents[$1]}" 2>/dev/null && die "agent $1 does not end: $(tail -n 3 "$dir/agent$1.err")"
	wait "${agents[$1]}" || die "agent $1: exit status $?"
}
# leaves EVENTS AGENT: sends SIGTERM to the agent, and checks that the run continues and repeats nothing
leaves() {
	kill -TERM "${agents[$2]}"
	ended "$2" 60
	said "$1" "$2" draining || die "the record does not say that node $2 drained"
	said "$1" "$2" left || die "the record does not say that node $2 has left"
	grep -qE "n0$2( \([^)]*\))? S[0-9] is draining" "$dir/${1##*/}.journal" || die "the journal does not name node $2"
}
newest() { grep '"event":"commit"' "$1" | field n | tail -n 1; }
in_stage() { # in_stage EVENTS STAGE: prints the nodes that the first plan has in this stage
	grep '"event":"plan"' "$1" | head -n 1 | sed "s/.*\"assignment\":\\[//; s/^\\[//; s/\\]\\].*//; s/\\],\\[/\\n/g" |
		sed -n "$(($2 + 1))p" | tr , ' '
}

events=$dir/first.events
six_begin first --run-dir "$dir/run" --agents 6 --stages 2,2,1,1 --skip 0 --eval-every 0 --checkpoint-every 1000 \
	--time-scale 0 --iterations 100000
ln -s first.err "$dir/first.events.journal"
wait_for "$events" 4 $controller 120
read -r one _ <<<"$(in_stage "$events" 0)"
read -r alone <<<"$(in_stage "$events" 3)"
leaves "$events" "$one"
wait_for "$events" $(($(newest "$events") + 3)) $controller 60
leaves "$events" "$alone"
grep -qE "n0$alone( \([^)]*\))? hands S3 over" "$dir/first.err" || die "S3 was not handed over"
wait_for "$events" $(($(newest "$events") + 3)) $controller 60
grep '"event":"recovery"' "$events" && die "work ran again"
again=$(grep '"event":"iteration"' "$events" | field tasks_again | sort -u)
[ "$again" = 0 ] || die "tasks ran again: $again"
grep -E 'run again|has lost its last replica|no plan' "$dir/first.err" && die "work ran again"

# SIGTERM to all processes at once
kill -TERM "${agents[@]}" "$controller" 2>/dev/null # errors are ignored, because two of the agents have already left
for i in 0 1 2 3 4 5; do [ "$i" = "$one" ] || [ "$i" = "$alone" ] || ended $i 60; done
wait "$controller" || die "controller: exit status $?"
last=$(newest "$events")
grep -q "checkpoint of it$last:" "$dir/first.err" || die "the last commit, it$last, was not saved"
check_verify "$dir/run" 6

# A node that alone holds its stage hands the stage over during a pause, although nothing is computed then.
six_begin paused --run-dir "$dir/paused" --agents 6 --stages 2,2,1,1 --skip 0 --eval-every 0 --checkpoint-every 1000 \
	--time-scale 0 --iterations 100000 --at 4:pause
events=$dir/paused.events
ln -s paused.err "$dir/paused.events.journal"
wait_for "$events" 3 $controller 120
read -r alone <<<"$(in_stage "$events" 3)"
leaves "$events" "$alone"
grep -qE "n0$alone( \([^)]*\))? hands S3 over" "$dir/paused.err" || die "S3 was not handed over in a pause"
[ "$(newest "$events")" = 3 ] || die "the paused run commits it$(newest "$events")"
"$sk" keygen "$dir/console.key" >"$dir/console.pub" || die keygen
"$sk" admit "$dir/admitted" "$(cat "$dir/console.pub")" --role console --name operator >/dev/null || die admit
tm -f /dev/null new-session -d -s one -x 160 -y 48 "env XDG_CONFIG_HOME=$dir/config LC_ALL=C.UTF-8 \
	$bin/skippipe-console --connect ipc://$dir/c --controller-key $("$sk" public "$dir/controller.key") --key $dir/console.key; sleep 100" ||
	die "tmux cannot start here"
pane=one:0
see 20 'PAUSED'
tm send-keys -t "$pane" -l ':resume'
tm send-keys -t "$pane" Enter
wait_for "$events" 6 $controller 60
grep '"event":"iteration"' "$events" | field tasks_again | grep -v '^0$' && die "work ran again after the pause"
kill -TERM "$controller"
wait "$controller" || die "controller: exit status $?"
for i in 0 1 2 3 4 5; do [ "$i" = "$alone" ] || ended $i 60; done
check_verify "$dir/paused" 6

# Two agents with a stage each. Neither can take over the other stage.
agent_options=("" "--notice-s 2")
six_begin alone --run-dir "$dir/alone" --agents 2 --stages 1,1 --skip 0 --eval-every 0 --time-scale 0 --iterations 100000
events=$dir/alone.events
wait_for "$events" 3 $controller 120
kill -TERM "${agents[0]}"
wait_text "$events" '"node":0,.*"state":"draining"' $controller 30
wait_for "$events" $(($(newest "$events") + 3)) $controller 60 # the agent continues to work until its notice ends
kill -0 "${agents[0]}" 2>/dev/null || die "the agent left although its stage needs it"
kill -TERM "${agents[0]}"
ended 0 10
kill -TERM "${agents[1]}"
ended 1 20
exit 0
