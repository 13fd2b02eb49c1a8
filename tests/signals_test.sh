#!/bin/bash
# SIGHUP, which the end of a terminal sends, makes the controller and the agents end in an orderly way. Under nohup
# they continue. A demo ends, although the process that started it ignores SIGCHLD.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key nohup
sk=$bin/skippipe
for who in controller agent0 agent1; do "$sk" keygen "$dir/$who.key" >"$dir/$who.pub" || die "keygen"; done
for i in 0 1; do
	"$sk" admit "$dir/admitted" "$(cat "$dir/agent$i.pub")" --role agent --name "agent$i" >/dev/null || die "admit"
done
begin() { # begin RUN PREFIX...: starts the programs, each after PREFIX (such as nohup)
	local run=$1 i
	shift
	: >"$dir/events"
	"$@" "$sk" controller --run-dir "$dir/$run" --agents 2 --stages 1,1 --skip 0 --eval-every 0 --iterations 100000 \
		--listen "ipc://$dir/c" --key "$dir/controller.key" --admitted "$dir/admitted" --format jsonl \
		>"$dir/events" 2>"$dir/controller.err" </dev/null &
	controller=$!
	agents=()
	for i in 0 1; do
		"$@" "$sk" agent --join "ipc://$dir/c" --controller-key "$dir/controller.pub" --key "$dir/agent$i.key" \
			--listen "ipc://$dir/$i" >"$dir/agent$i.out" 2>"$dir/agent$i.err" </dev/null &
		agents+=($!)
	done
	started+=($controller "${agents[@]}")
	wait_for "$dir/events" 3 $controller 120
}

begin nohup nohup
kill -HUP $controller "${agents[@]}"
n=$(count "$dir/events" iteration)
wait_for "$dir/events" $((n + 5)) $controller 60
for pid in "${agents[@]}"; do kill -0 "$pid" || die "an agent ended although SIGHUP is ignored"; done
kill -TERM $controller
wait $controller || die "controller: exit status $?"
wait "${agents[@]}" || die "agent: exit status $?"

begin terminal env --default-signal=HUP
kill -HUP "${agents[1]}"
wait "${agents[1]}" || die "agent: exit status $? after SIGHUP"
grep -q "leaving: Hangup" "$dir/agent1.err" || die "the agent did not leave in order"
kill -HUP $controller
wait $controller || die "controller: exit status $? after SIGHUP"

timeout -k 5 120 env --ignore-signal=CHLD "$sk" demo --headless --agents 2 --stages 1,1 --skip 0 --time-scale 0 \
	--eval-every 0 --iterations 2 --run-dir "$dir/ignored" >"$dir/ignored.out" 2>"$dir/ignored.err" ||
	die "demo: exit status $? with SIGCHLD ignored"
