#!/bin/bash
# All processes of a run end before its first checkpoint: in one run by kill -9, in another by SIGTERM at the same time.
# The run can be resumed; it restarts from its first weights, and the record says so.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify sqlite3
sk=$bin/skippipe
agents=()
for who in controller $(seq -f agent%g 0 3); do "$sk" keygen "$dir/$who.key" >"$dir/$who.pub" || die "keygen"; done
for i in $(seq 0 3); do
	"$sk" admit "$dir/admitted" "$(cat "$dir/agent$i.pub")" --role agent --name "agent$i" >/dev/null || die "admit"
done

begin() { # begin RUN OPTION...: starts the controller and the agents
	local run=$1 i
	shift
	: >"$dir/events"
	"$sk" controller "$@" --listen "ipc://$dir/c" --key "$dir/controller.key" --admitted "$dir/admitted" \
		--format jsonl >"$dir/events" 2>"$dir/controller.err" &
	controller=$!
	started+=($controller)
	agents=()
	for i in 0 1 2 3; do
		"$sk" agent --join "ipc://$dir/c" --controller-key "$dir/controller.pub" --key "$dir/agent$i.key" \
			--node "$i" --listen "ipc://$dir/$i" --run-dir "$run" >"$dir/agent$i.out" 2>"$dir/agent$i.err" &
		agents+=($!)
		started+=($!)
	done
}
end_all() { # end_all SIGNAL: ends all processes by this signal
	local pid
	kill "-$1" "$controller" "${agents[@]}" || die "a process ended too early"
	for pid in "$controller" "${agents[@]}"; do wait "$pid" 2>/dev/null; done
}
resumes() { # resumes RUN: resumes the run to its end, from the first weights or from a checkpoint that it wrote at SIGTERM
	begin "$1" --resume "$1" --iterations 12 --gather-s 10
	wait_for "$dir/events" 12 $controller 120
	wait $controller || die "controller: exit status $?"
	wait "${agents[@]}"
	check_verify "$1" 4
}
started_again() { sqlite3 "$1/run.db" 'select text from note' | grep -q 'goes back from it[0-9]* to its first weights'; }
new=(--agents 4 --stages 2,2 --skip 0 --eval-every 0 --iterations 1000)

begin "$dir/killed" --run-dir "$dir/killed" "${new[@]}"
wait_for "$dir/events" 3 $controller 120
end_all KILL
sqlite3 "$dir/killed/run.db" 'select text from note' | grep -q 'the first checkpoint follows it50' ||
	die "the journal does not say when the first checkpoint is made"
resumes "$dir/killed"
started_again "$dir/killed" || die "the journal does not say that the run restarted"
[ "$(sqlite3 "$dir/killed/run.db" 'select count(*) from restore where iteration = 0')" -ge 2 ] ||
	die "the restart is not in the record"

begin "$dir/ended" --run-dir "$dir/ended" "${new[@]}"
wait_for "$dir/events" 3 $controller 120
end_all TERM
resumes "$dir/ended"
started_again "$dir/ended" || echo "the agents had written a checkpoint when they ended"
