#!/bin/bash
# Rehearses a cluster of nine nodes that only pretend to compute. A node and the controller are killed and return, and
# the skip ratio changes. The record can be verified, and no program takes it for the record of a training.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify skippipe-model skippipe-console
run=$dir/run events=$dir/events

# Nine nodes of different speed in three places.
awk 'BEGIN {
	n = 9
	printf "{\"format\": \"skippipe.cluster/1\", \"name\": \"nine\", \"stages\": [3, 2, 2, 2], "
	printf "\"microbatches_per_data_node\": 3, \"activation_bytes\": 33554432, \"weights_bytes_per_stage\": 268435456, \"nodes\": ["
	for (i = 0; i < n; i++)
		printf "%s{\"id\": %d, \"location\": \"%s\", \"forward_s\": %.3f, \"backward_s\": %.3f, \"loss_s\": 0.01, \"memory\": 3}", \
			i ? ", " : "", i, substr("ABC", i % 3 + 1, 1), 0.05 + 0.005 * (i % 4), 0.1 + 0.01 * (i % 4)
	for (what = 0; what < 2; what++) {
		printf what ? "], \"bandwidth_bytes_per_s\": [" : "], \"links\": {\"latency_s\": ["
		for (i = 0; i < n; i++) {
			printf i ? ", [" : "["
			for (k = 0; k < n; k++)
				printf "%s%s", k ? ", " : "", what ? (i % 3 == k % 3 ? 1e10 : 3e8) : (i == k ? 0 : i % 3 == k % 3 ? 0.001 : 0.04)
			printf "]"
		}
	}
	print "]}}"
}' >"$dir/nine.json"

"$bin/skippipe" rehearse --cluster "$dir/nine.json" --wire q6 --sum-wire q6 --scale-bytes 2000 --headless --format jsonl \
	--iterations 14 --skip 1/4 --at 3:kill:4 --at 9:skip:2 --silence-ms 2000 --run-dir "$run" \
	>"$events" 2>"$dir/rehearse.err" &
rehearsal=$!
started+=($rehearsal)
wait_for "$events" 4 $rehearsal 120
# Prints what a console shows.
read -r address key < <(sed -n 's/.*listening at \([^ ]*\) with key \([0-9a-f]*\)$/\1 \2/p' "$run/log/controller.log")
"$bin/skippipe" console --connect "$address" --controller-key "$key" --key "$run/keys/console.key" --readonly --plain \
	>"$dir/console" 2>"$dir/console.err" &
console=$!
started+=($console)
wait_for "$events" 6 $rehearsal 120
kill -KILL "$(sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1)"
wait $rehearsal || die "rehearse: exit status $?"
started=($console)

[ "$(grep -c 'controller started' "$run/log/demo.log")" = 2 ] || die "the controller was not started twice"
[ "$(grep -c 'agent 4 started' "$run/log/demo.log")" = 1 ] || die "the supervisor started agent 4 again"
grep -q 'Z REHEARSAL, nothing is trained: run .* bytes / 2000' "$dir/console" || die "a console does not say that it is a rehearsal"
grep -q 'Z iteration [0-9]*: loss -, ' "$dir/console" || die "a console shows a loss"
grep -q 'REHEARSAL' "$run/log/controller.log" || die "the journal does not say that it is a rehearsal"
iterations=$(count "$events" iteration)
[ "$iterations" -ge 13 ] || die "$iterations iterations"
[ "$(grep '"event":"iteration"' "$events" | grep '"loss":null' | grep -c '"rehearsal":true')" = "$iterations" ] ||
	die "an iteration has a loss, or does not say that it is a rehearsal"
! grep -q '"event":"validation"' "$events" || die "a rehearsal validated"
grep '"event":"iteration"' "$events" | grep -q '"path_length":2' || die "the skip ratio did not change"
check_plans "$run"

check_verify "$run" 9
[ "$(field committed <"$dir/verify.json")" = 14 ] || die "$(field committed <"$dir/verify.json") commits"
grep -q '"rehearsal":true' "$dir/verify.json" || die "verify does not say that it is a rehearsal"
"$bin/skippipe" verify "$run" | grep -q '^REHEARSAL' || die "verify does not say in words that it is a rehearsal"
check_gone "$run"

# No program accepts a checkpoint of a rehearsal as a model.
checkpoint=$(ls -d "$run"/checkpoints/* | tail -n 1)
[ -f "$checkpoint/manifest.json" ] || die "no checkpoint was written"
words='a checkpoint of a rehearsal, which trains nothing'
expect 1 "$words" "$bin/skippipe" eval "$checkpoint"
expect 1 "$words" "$bin/skippipe" export "$checkpoint" --out "$dir/exported"
expect 1 "$words" "$bin/skippipe" export "$run" --out "$dir/exported"
expect 1 "$words" "$bin/skippipe" generate "$checkpoint"
expect 1 "$words" "$bin/skippipe" train --from "$checkpoint" --out "$dir/trained"
expect 1 "$words" "$bin/skippipe" demo --headless --iterations 1 --from "$checkpoint" --run-dir "$dir/resumed"

# A rehearsal stays a rehearsal when it is resumed.
expect 1 'eval-every 5: a rehearsal has no loss' "$bin/skippipe" controller --resume "$run" --key "$run/keys/controller.key" \
	--admitted "$run/keys/admitted" --iterations 20 --eval-every 5

# Without a file, the rehearsal uses the published regions with the model's number of bytes. A file that was made for
# another model is reported.
once() { "$bin/skippipe" rehearse --headless --iterations 1 --silence-ms 2000 "$@" >"$dir/once.out" 2>"$dir/once.err" || die "rehearse $*"; }
once --agents 4 --stages 2,2 --skip 0 --time-scale 0.02 --run-dir "$dir/regions"
grep -q 'REHEARSAL' "$dir/once.out" && ! grep -q 'the cluster file has activations' "$dir/once.out" || die "the bytes of the regions"
once --cluster "$dir/nine.json" --model 124m --time-scale 0.2 --run-dir "$dir/other"
grep -q 'the cluster file has activations of 3.36e+07 bytes.* the model.s have 1.2[0-9]*e+07' "$dir/once.out" ||
	die "the activations of another model are not reported"

# A rehearsal refuses an agent that computes, and a training refuses an agent that pretends.
# mixed NAME DEVICE WORDS CONTROLLER-OPTION...: a controller must refuse an agent with this device in these words
mixed() {
	local name=$1 device=$2 words=$3 key
	shift 3
	"$bin/skippipe" keygen "$dir/$name.key" >/dev/null && "$bin/skippipe" keygen "$dir/$name.agent" >/dev/null || die keygen
	"$bin/skippipe" admit "$dir/$name.admitted" "$("$bin/skippipe-key" public "$dir/$name.agent")" --role agent --name "$name" >/dev/null ||
		die admit
	key=$("$bin/skippipe-key" public "$dir/$name.key")
	"$bin/skippipe" controller --run-dir "$dir/$name" --listen "ipc://$dir/$name.c" --key "$dir/$name.key" \
		--admitted "$dir/$name.admitted" --cluster "$dir/nine.json" "$@" >"$dir/$name.out" 2>"$dir/$name.err" &
	started+=($!)
	expect 1 "$words" "$bin/skippipe" agent --join "ipc://$dir/$name.c" --controller-key "$key" --key "$dir/$name.agent" \
		--listen "ipc://$dir/$name.a" --device "$device" --orphan-s 20
}
mixed rehearsal cpu 'this run is a rehearsal, whose agents need --device pretend' --rehearse
mixed training pretend 'device pretend computes nothing: this run is no rehearsal'

# One command chooses a cluster from a fleet and rehearses it, with the layers that `plan --fleet` chooses.
cat >"$dir/fleet.json" <<'END'
{"format": "skippipe.fleet/1", "name": "five", "machines": [
 {"name": "near", "count": 4, "place": "Iowa", "device": "L4", "memory_gb": 2.5},
 {"name": "distant", "place": "Australia", "device": "L4", "memory_gb": 2.5}]}
END
"$bin/skippipe" plan --fleet "$dir/fleet.json" --model 124m --format json >"$dir/chosen" 2>"$dir/chosen.err" || die "plan: $(cat "$dir/chosen.err")"
layers=$(grep -o '"layers":\[[0-9,]*\]' "$dir/chosen" | head -n 1 | tr -d '"[]' | cut -d : -f 2)
once --fleet "$dir/fleet.json" --model 124m --time-scale 0.1 --format jsonl --run-dir "$dir/fleet"
run_layers=$(grep '"event":"node"' "$dir/once.out" | grep -v '"state":"failed"' | sed -n 's/.*"stage":\([0-9]*\),.*"layers":\([0-9]*\).*/\1 \2/p' |
	sort -un | cut -d ' ' -f 2 | paste -sd ,)
[ -n "$layers" ] && [ "$run_layers" = "$layers" ] || die "the fleet is rehearsed with layers $run_layers, chosen were $layers"
files=$(sed -n 's/.*rehearse --cluster \(.*\)\/cluster.json .*/\1/p' "$dir/once.err")
[ -n "$files" ] && [ ! -e "$files" ] || die "the choice's folder is still there: $files"
expect 2 'fleet: not with --cluster' "$bin/skippipe" rehearse --fleet "$dir/fleet.json" --cluster "$dir/nine.json"
expect 2 'fleet: not with --agents or --stages' "$bin/skippipe" rehearse --fleet "$dir/fleet.json" --agents 4
expect 1 'nothing.json: No such file' "$bin/skippipe" rehearse --fleet "$dir/nothing.json" --headless
