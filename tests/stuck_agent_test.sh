#!/bin/bash
# The computation of a node hangs while its heartbeats continue. The node gives up by itself and its process ends, and
# the run continues without it. Another agent gets SIGTERM while it hangs.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
sk=$bin/skippipe stuck=$bin/../tests/stuck.so
[ -e "$stuck" ] || skip "stuck.so is not there"
"$sk" keygen "$dir/controller.key" >"$dir/controller.pub" || die "keygen"
agents=()
for i in $(seq 0 5); do
	"$sk" keygen "$dir/agent$i.key" >"$dir/agent$i.pub" || die "keygen"
	"$sk" admit "$dir/admitted" "$(cat "$dir/agent$i.pub")" --role agent --name "agent$i" || die "admit"
	STUCK=$dir/stuck$i LD_PRELOAD=$stuck "$bin/skippipe-agent" --join "ipc://$dir/door" --node "$i" \
		--controller-key "$(cat "$dir/controller.pub")" --key "$dir/agent$i.key" \
		--listen "ipc://$dir/agent$i" --stuck-s $((i == 3 ? 1 : 100)) 2>"$dir/agent$i.err" &
	agents[i]=$!
	started+=($!)
done
# The nodes keep the stages of this file: n03 and n05 have different stages. A command would not exclude n05 if it were
# the last replica of its stage.
nodes= delays=
for i in 0 1 2 3 4 5; do
	nodes+=",{\"id\":$i,\"location\":\"here\",\"forward_s\":0.01,\"backward_s\":0.02,\"loss_s\":0.01,\"memory\":8,\"stage\":$((i % 3))}"
	delays+=,[0.001,0.001,0.001,0.001,0.001,0.001]
done
echo "{\"format\":\"skippipe.cluster/1\",\"name\":\"six\",\"stages\":[2,2,2],\"nodes\":[${nodes#,}],\"delay_s\":[${delays#,}]," \
	"\"microbatches_per_data_node\":3}" >"$dir/cluster.json"
"$sk" controller --run-dir "$dir/run" --key "$dir/controller.key" --admitted "$dir/admitted" \
	--listen "ipc://$dir/door" --cluster "$dir/cluster.json" --assignment given --skip 0 --iterations 40 --time-scale 0 \
	--eval-every 0 --format jsonl --at 8:fail:5 >"$dir/events" 2>"$dir/controller.err" &
controller=$!
started+=($controller)
ended() { # ended PID SECONDS: waits for the end of the process, and sets rc to its exit status
	for _ in $(seq $(($2 * 10))); do kill -0 "$1" 2>/dev/null || { wait "$1"; rc=$?; return 0; }; sleep 0.1; done
	return 1
}
wait_for "$dir/events" 3 $controller 60
touch "$dir/stuck3"
ended "${agents[3]}" 60 || die "the agent that hangs does not give up"
[ "$rc" = 1 ] || die "the agent that hung: exit status $rc"
grep -q 'a job on its device has not ended' "$dir/agent3.err" || die "the agent does not report why"
grep -q '"node":3,.*"state":"dead"' "$dir/events" && grep -qE 'n03( \([^)]*\))?: a job on its device has not ended' "$dir/controller.err" ||
	die "the controller does not report why"
wait_for "$dir/events" 9 $controller 60 # n05 is excluded, so no node waits for it
touch "$dir/stuck5"
kill -TERM "${agents[5]}"
ended "${agents[5]}" 30 || die "an agent that hangs does not obey"
wait $controller || die "controller: exit status $?"
[ "$(count "$dir/events" commit)" = 40 ] || die "not 40 commits"
check_verify "$dir/run" 3
