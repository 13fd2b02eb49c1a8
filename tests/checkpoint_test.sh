#!/bin/bash
# The whole demo is killed with -9. A controller and new agents resume the run from the newest checkpoint. If this
# checkpoint is damaged, they use the checkpoint before it. In a third run a stage is lost together with its standby
# copy, and no checkpoint can be read. The other agents keep their current state, the controller makes the lost
# stage from the average of its neighbours, and the journal reports this. verify recomputes all three runs.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
sk=$bin/skippipe

begin() { # begin NAME DEMO-OPTIONS...: starts a demo
	run=$dir/$1 events=$dir/$1.events
	shift
	"$sk" demo --headless --format jsonl --time-scale 0 --silence-ms 1500 --eval-every 0 \
		--run-dir "$run" "$@" >"$events" 2>"$run.err" &
	demo=$!
	started+=($demo)
}

# go_on RUN ITERATIONS: resumes the run by hand, with the keys of the demo
go_on() {
	local run=$1 key i agents=()
	key=$("$bin/skippipe-key" public "$run/keys/controller.key") || die "no key"
	"$sk" controller --resume "$run" --listen "ipc://$dir/c" --key "$run/keys/controller.key" \
		--admitted "$run/keys/admitted" --iterations "$2" --checkpoint-every 4 --silence-ms 1500 \
		--format jsonl >"$run.events2" 2>"$run.err" &
	controller=$!
	started+=($controller)
	for i in 0 1 2 3; do
		"$sk" agent --join "ipc://$dir/c" --controller-key "$key" --key "$run/keys/agent$i.key" \
			--listen "ipc://$dir/a$i" --node $i --run-dir "$run" 2>"$dir/agent$i.log" &
		agents+=($!)
	done
	started+=("${agents[@]}")
	wait $controller || die "controller: exit status $?"
	for i in "${agents[@]}"; do wait "$i"; done
	started=()
}

restored() { # restored RUN ITERATION: checks that the run returned to this iteration, and that verify agrees
	check_verify "$1" 4
	[ "$(field committed <"$dir/verify.json")" = 14 ] || die "$(field committed <"$dir/verify.json") commits"
	[ "$(field restored <"$dir/verify.json")" = 4 ] || die "$(field restored <"$dir/verify.json") stages restored"
	grep -q "goes back from it[0-9]* to the checkpoint of it$2\$" "$1.err" || die "it did not go back to $2"
}

begin run --agents 4 --stages 1,1,1,1 --skip 1/4 --iterations 30 --checkpoint-every 4
wait_for "$events" 10 $demo 120
kill_cluster "$run" $demo
last=$(basename "$(ls -d "$run"/checkpoints/* | tail -n 1)")
[ -f "$run/checkpoints/$last/manifest.json" ] || last=$(basename "$(ls -d "$run"/checkpoints/* | tail -n 2 | head -n 1)")
[ "$((10#$last))" -ge 8 ] || die "no checkpoint of it8: $last"
cp -r "$run" "$dir/damaged"

go_on "$run" 14
restored "$run" $((10#$last))

# One byte of a tensor is changed. The hash of the file is then wrong, and the run uses the checkpoint before it.
printf X | dd of="$dir/damaged/checkpoints/$last/stage-002.$last.safetensors" bs=1 seek=20000 conv=notrunc 2>/dev/null
go_on "$dir/damaged" 14
restored "$dir/damaged" $((10#$last - 4))
grep -q "damaged, or of other stages: its hash differs from the recorded one" "$dir/damaged.err" || die "no report of the damage"

begin alone --agents 5 --stages 2,1,1,1 --skip 1/4 --iterations 14 --checkpoint-every 3
wait_for "$events" 5 $demo 120
log=$run/log/controller.log
node=$(grep '"event":"plan"' "$events" | head -n 1 | sed 's/.*"assignment":\[\[[0-9,]*\],\[[0-9]*\],\[\([0-9]*\)\],.*/\1/')
rm -rf "$run/checkpoints"
: >"$run/checkpoints"
keeper=$(sed -n 's/.*S2 has one replica: n\([0-9]*\),.*/\1/p' "$log" | head -n 1)
kill -KILL "$(agent_pid "$run" "$node")" "$(agent_pid "$run" "$((10#$keeper))")" || die "n$node, n$keeper: not there"
wait $demo || die "alone: exit status $?"
started=()
grep -q "the checkpoint of it3 is unusable" "$log" || die "no file was missed"
grep -q "S2 is lost: no copy, no checkpoint" "$log" || die "no report of the loss"
check_verify "$run" 4
# n$keeper, which held the copy of S2, was killed too. If n$keeper was the only replica of its own stage, and n$node
# held the copy of that stage, that stage is lost as well.
lost=$(grep -c "is lost: no copy, no checkpoint" "$log")
[ "$(field averaged <"$dir/verify.json")" = "$lost" ] || die "not as many stages were made of their neighbours as were lost: $lost"
[ "$(field committed <"$dir/verify.json")" = 14 ] || die "$(field committed <"$dir/verify.json") commits"
