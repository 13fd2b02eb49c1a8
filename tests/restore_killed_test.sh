#!/bin/bash
# A controller is killed with -9 while agents read a checkpoint. The next controller is killed right after it has
# recorded the restore. The third one finishes the run, and one process computes the same bits.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
sk=$bin/skippipe run=$dir/run events=$dir/events agents=()

"$sk" demo --headless --format jsonl --time-scale 0 --silence-ms 1500 --eval-every 0 --run-dir "$run" \
	--agents 4 --stages 1,1,1,1 --skip 1/4 --iterations 30 --checkpoint-every 4 >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$events" 10 $demo 120
kill_cluster "$run" $demo

key=$("$bin/skippipe-key" public "$run/keys/controller.key") || die "no key"
begin() { # begin NAME: starts a controller, which resumes the run
	"$sk" controller --resume "$run" --listen "ipc://$dir/c" --key "$run/keys/controller.key" \
		--admitted "$run/keys/admitted" --iterations 14 --silence-ms 1500 --format jsonl \
		>"$dir/$1.events" 2>"$dir/$1.err" &
	controller=$!
	started+=($controller)
}
kill_at() { # kill_at NAME WORDS: kills the controller when it prints WORDS, while the agents are stopped
	local end=$((SECONDS + 120))
	until grep -q "$2" "$dir/$1.err"; do
		kill -0 $controller 2>/dev/null || die "$1 ended"
		[ $SECONDS -lt $end ] || die "$1 never said: $2"
	done
	kill -STOP "${agents[@]}"
	kill -KILL $controller
	wait $controller 2>/dev/null
}

begin first
for i in 0 1 2 3; do
	"$sk" agent --join "ipc://$dir/c" --controller-key "$key" --key "$run/keys/agent$i.key" \
		--listen "ipc://$dir/a$i" --node $i --run-dir "$run" 2>"$dir/agent$i.err" &
	agents+=($!)
done
started+=("${agents[@]}")
kill_at first 'goes back from it[0-9]* to the checkpoint of it[0-9]*$'
grep -q 'restored: it' "$dir/first.err" && die "it was done before it was killed"
begin second
kill -CONT "${agents[@]}"
kill_at second 'restored: it[0-9]* to it[0-9]* are repeated'
grep -q '"event":"commit"' "$dir/second.events" && die "it went on before it was killed"
begin third
kill -CONT "${agents[@]}"
wait $controller || die "third: exit status $?"
for pid in "${agents[@]}"; do wait "$pid" || die "an agent: exit status $?"; done
started=()

grep -q 'goes back' "$dir/third.err" && die "it went back twice"
check_verify "$run" 4
[ "$(field committed <"$dir/verify.json")" = 14 ] || die "$(field committed <"$dir/verify.json") commits"
[ "$(field restored <"$dir/verify.json")" = 4 ] || die "$(field restored <"$dir/verify.json") stages restored"
