#!/bin/bash
# A controller without --stages measures six agents, two of which compute without vector instructions. The controller
# chooses the number of stages, their layers and their nodes, and the journal says why. The script prints the measured
# and the predicted time of an iteration, but does not compare the two. If the agents cannot hold the model, the run
# ends with a message about what is missing.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify sqlite3
sk=$bin/skippipe

"$sk" keygen "$dir/controller.key" >/dev/null || die "no key"
key=$("$sk" public "$dir/controller.key") || die "no public key"
for i in 0 1 2 3 4 5; do
	"$sk" keygen "$dir/agent$i.key" >/dev/null || die "no key"
	"$sk" admit "$dir/admitted" "$("$sk" public "$dir/agent$i.key")" --role agent --name "node$i" >/dev/null ||
		die "agent $i is not admitted"
done

# begin NAME CONTROLLER-OPTIONS...: starts a controller
begin() {
	local name=$1
	run=$dir/$name events=$dir/$name.events err=$dir/$name.err
	shift
	[ "$1" = --resume ] || set -- --run-dir "$run" "$@"
	"$sk" controller --key "$dir/controller.key" --admitted "$dir/admitted" --listen "ipc://$dir/c" \
		--format jsonl --eval-every 0 --silence-ms 3000 "$@" >"$events" 2>"$err" &
	controller=$!
	started+=($controller)
	for _ in $(seq 100); do [ -S "$dir/c" ] && break; sleep 0.1; done
}

# agent N OPTIONS...: starts an agent
agent() {
	local i=$1
	shift
	"$sk" agent --join "ipc://$dir/c" --controller-key "$key" --key "$dir/agent$i.key" --listen "ipc://$dir/a$i" \
		--node "$i" "$@" 2>"$dir/agent$i.log" &
	agents+=($!)
	started+=($!)
}

ended() { # ended STATUS: waits for all processes, and checks the controller's exit status
	local status=0
	wait $controller || status=$?
	for i in "${agents[@]}"; do wait "$i"; done
	started=() agents=()
	[ $status = "$1" ] || die "controller: exit status $status"
}

agents=()
begin run --agents 6 --iterations 3
for i in 0 1 2 3; do agent $i --run-dir "$run"; done
for i in 4 5; do agent $i --run-dir "$run" --device cpu:plain; done
ended 0
check_verify "$run" 2
grep -q 'chosen: [0-9]* stages* of [0-9,]* layers, [0-9.]* s an iteration: S0 ' "$err" || die "the journal does not say what was chosen"
grep -q 'second: ' "$err" || die "the journal names no other candidate"
layers=$(sed -n 's/.*chosen: [0-9]* stages* of \([0-9,]*\) layers.*/\1/p' "$err")
grep -q "\"event\":\"iteration\",\"n\":3," "$events" || die "it did not come to iteration 3"
predicted=$(sed -n 's/.*chosen: .* layers, \([0-9.e+-]*\) s an iteration.*/\1/p' "$err")
echo "layers $layers: $predicted s an iteration were predicted, the last one took $(grep '"event":"iteration"' "$events" | tail -n 1 | field real_s) s"

# During a demo, the journal says which stages the controller would choose now.
"$sk" demo --headless --format jsonl --agents 6 --stages 2,2,2 --time-scale 0 --eval-every 0 --iterations 60 \
	--at 3:stages --at 4:hours:2 --at 40:stages --run-dir "$dir/demo" >"$dir/demo.events" 2>"$dir/demo.err" || die "demo: exit status $?"
grep -q 'stages: best for these nodes: [0-9]* stages* of [0-9,]* layers' "$dir/demo/log/controller.log" || die "no answer to stages"
grep -q 'stages: the present 4,4,4 layers \|stages: the run has these layers already' "$dir/demo/log/controller.log" ||
	die "the answer does not compare"
grep -q 'hours: full: [0-9]* iterations of ' "$dir/demo/log/controller.log" && grep -q 'hours: speed: [0-9]* iterations of ' \
	"$dir/demo/log/controller.log" || die "no answer to hours"

# If a controller dies before it has chosen the stages, there is nothing to resume.
begin early --agents 6
for _ in $(seq 100); do [ -s "$dir/early/cluster.json" ] && break; sleep 0.1; done
sleep 1
kill -KILL $controller
wait $controller 2>/dev/null
started=()
expect 1 'ended before its stages were chosen' "$sk" controller --resume "$dir/early" --key "$dir/controller.key" \
	--admitted "$dir/admitted"

# Three agents with too little memory
begin small --agents 3
for i in 0 1 2; do agent $i --memory 48; done
ended 1
grep -q 'the fleet holds [0-9]* of the 12 layers' "$err" || die "the error does not say how much fits"
grep -q 'MB are missing.*It would fit with [0-9]* more like n0' "$err" || die "the error does not say what would help"

# An agent that has memory for the measurement but not for a stage takes no part in the run.
begin left --agents 3 --iterations 3
for i in 0 1; do agent $i; done
agent 2 --memory 10
ended 0
grep -q 'n02.* is left out: [0-9.]* MB are missing for a stage of one layer' "$err" || die "the journal does not say why n02 is left out"
grep -q '"event":"node","node":2,.*"state":"failed","why":"left out' "$events" || die "n02 is not shown as left out"
check_verify "$dir/left" 2

# The configured microbatches of four sequences do not fit. The controller takes smaller ones, with the same number of
# sequences in an iteration, and the record has their size. A size that was given by hand stays.
begin smaller --agents 3 --iterations 2
for i in 0 1 2; do agent $i --memory 60; done
ended 0
grep -q 'microbatches: 96 of 2 sequences each, because no memory is free for 48 of 4' "$err" || die "the journal does not name the microbatches"
begin smaller --resume "$dir/smaller" --iterations 3
for i in 0 1 2; do agent $i --memory 60; done
ended 0
check_verify "$dir/smaller" 3
[ "$(field committed <"$dir/verify.json")" = 3 ] || die "the run was not resumed"
[ "$(sqlite3 "$dir/smaller/run.db" 'select batch, n_shards * per_shard from run')" = "2|96" ] || die "the record has other microbatches"
begin given --agents 3 --batch 4
for i in 0 1 2; do agent $i --memory 60; done
ended 1
grep -q 'the fleet holds [0-9]* of the 12 layers' "$err" || die "a given size was changed"
