#!/bin/bash
# A run is stopped and resumed six times, each time before a regular checkpoint. It keeps only its newest checkpoints.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
sk=$bin/skippipe
for who in controller agent0 agent1; do "$sk" keygen "$dir/$who.key" >"$dir/$who.pub" || die "keygen"; done
for i in 0 1; do
	"$sk" admit "$dir/admitted" "$(cat "$dir/agent$i.pub")" --role agent --name "agent$i" >/dev/null || die "admit"
done
session() { # session LAST OPTION...: resumes the run, and stops it at this iteration
	local last=$1 agents=() i
	shift
	: >"$dir/events"
	"$sk" controller "$@" --listen "ipc://$dir/c" --key "$dir/controller.key" --admitted "$dir/admitted" \
		--format jsonl >"$dir/events" 2>"$dir/controller.err" &
	controller=$!
	for i in 0 1; do
		"$sk" agent --join "ipc://$dir/c" --controller-key "$dir/controller.pub" --key "$dir/agent$i.key" \
			--node "$i" --listen "ipc://$dir/$i" --run-dir "$dir/disk$i" >"$dir/agent$i.out" 2>"$dir/agent$i.err" &
		agents+=($!)
	done
	started+=($controller "${agents[@]}")
	wait_for "$dir/events" "$last" $controller 120
	kill -TERM $controller
	wait $controller || die "controller: exit status $?"
	wait "${agents[@]}" || die "agent: exit status $?"
}
session 2 --run-dir "$dir/run" --agents 2 --stages 1,1 --skip 0 --eval-every 0 --iterations 1000
for n in 1 2 3 4 5; do session $((2 + 3 * n)) --resume "$dir/run"; done
for i in 0 1; do
	left=$(find "$dir/disk$i/checkpoints" -mindepth 1 -maxdepth 1 -name '[0-9]*' | wc -l)
	[ "$left" -ge 2 ] && [ "$left" -le 3 ] || die "$left checkpoints on the disk of agent $i: $(ls "$dir/disk$i/checkpoints")"
done
check_verify "$dir/run" 2
