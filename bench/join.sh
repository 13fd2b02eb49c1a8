#!/bin/bash
# Measures how fast a joining agent gets its weights: bench/join.sh [MBIT-A-SECOND [SECONDS]]
# The controller and three agents run in one network namespace, the fourth agent in another namespace
# behind a veth pair whose rate tc limits. The script prints the rate of the copy as a share of the
# link's rate, and the times of iterations before and during the copy. A forward pass takes SECONDS: a
# node that has computed sleeps for the rest of that time and leaves the processor to the copy, like a
# node that waits for its GPU. 0: no sleep. Needs root.
. "$(dirname "$0")/../tests/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key ip tc
sk=$bin/skippipe rate=${1:-200} forward=${2:-0.3} tag=skj$$ run=$dir/run
ip netns add "$tag-a" && ip netns add "$tag-b" || die "no right to make a network namespace"
undo+=("ip netns del $tag-a" "ip netns del $tag-b")
ip link add "$tag" netns "$tag-a" type veth peer name "$tag" netns "$tag-b" || die "no veth pair"
n=1
for ns in a b; do
	ip -n "$tag-$ns" addr add "10.78.0.$n/24" dev "$tag"
	ip -n "$tag-$ns" link set "$tag" up
	ip -n "$tag-$ns" link set lo up
	ip netns exec "$tag-$ns" tc qdisc add dev "$tag" root tbf rate "${rate}mbit" burst 256k latency 200ms ||
		die "tc cannot shape"
	n=2
done
for who in controller 0 1 2 3; do "$sk" keygen "$dir/$who.key" >"$dir/$who.pub"; done
for i in 0 1 2 3; do "$sk" admit "$dir/admitted" "$(cat "$dir/$i.pub")" --role agent --name "agent$i"; done
awk -v f="$forward" 'BEGIN {
	printf "{\"format\": \"skippipe.cluster/1\", \"name\": \"four\", \"stages\": [2, 2], \"nodes\": ["
	for (i = 0; i < 4; i++)
		printf "%s{\"id\": %d, \"location\": \"here\", \"forward_s\": %g, \"backward_s\": %g, \"loss_s\": %g, \"memory\": 3, \"stage\": %d}", i ? ", " : "", i, f, 2 * f, f / 4, i % 2
	printf "], \"delay_s\": ["
	for (i = 0; i < 4; i++) printf "%s[0.002, 0.002, 0.002, 0.002]", i ? ", " : ""
	print "], \"microbatches_per_data_node\": 2}" }' >"$dir/cluster.json"
pace=(--emulate "$dir/cluster.json" --assignment given --time-scale 1)
[ "$forward" != 0 ] || pace=(--agents 4 --stages 2,2 --time-scale 0 --microbatches 2)
ip netns exec "$tag-a" "$sk" controller --run-dir "$run" --listen tcp://10.78.0.1:7701 --key "$dir/controller.key" \
	--admitted "$dir/admitted" "${pace[@]}" --format jsonl --silence-ms 5000 --gather-s 8 \
	--model "${MODEL:-30m}" --batch 1 --sequence 64 --eval-every 0 --iterations 60 >"$dir/events" 2>"$dir/controller.err" &
controller=$!
started+=($controller)
join() { # join NAMESPACE HOST NODE: starts the agent of a node at 10.78.0.HOST
	ip netns exec "$tag-$1" "$sk" agent --join tcp://10.78.0.1:7701 --controller-key "$(cat "$dir/controller.pub")" \
		--key "$dir/$3.key" --node "$3" --listen "tcp://10.78.0.$2:$((7710 + $3))" 2>"$dir/agent$3.log" &
	started+=($!)
}
for i in 0 1 2; do join a 1 $i; done
wait_for "$dir/events" 6 $controller 200
first=$(grep -c '"event":"iteration"' "$dir/events")
join b 2 3
for _ in $(seq 1000); do grep -qs "is whole" "$dir/agent3.log" && break; sleep 0.1; done
grep -qs "is whole" "$dir/agent3.log" || {
	grep '"node":3' "$dir/events" | tail -n 2
	grep -h 'n03 ' "$dir/controller.err" | tail -n 2
	die "the joining agent did not get the whole copy"
}
seconds() { sed -n "s/^[0-9-]*T\([0-9:.]*\)Z .*$1.*/\1/p" "$dir/agent3.log" | head -n 1 | awk -F: '{ print $1 * 3600 + $2 * 60 + $3 }'; }
from=$(seconds "copy of stage") to=$(seconds "is whole")
for _ in $(seq 300); do grep -q 'ready: stage' "$dir/agent3.log" && break; sleep 0.1; done
bytes=$(sed -n 's/.*ready: stage [01], \([0-9]*\) parameters.*/\1/p' "$dir/agent3.log")
wait_for "$dir/events" $(($(grep -c '"event":"iteration"' "$dir/events") + 1)) $controller 100
sums=$(($(grep -c '"event":"commit"' "$dir/events") - first))
awk -v n="$sums" -v f="$from" -v t="$to" -v p="$bytes" -v r="$rate" 'BEGIN {
	mb = 12 * p / 1e6; all = mb + n * 4 * p / 1e6
	printf "%.0f MB of weights and moments in %.2f s, and about %d sums: %.1f MB/s, %.0f%% of the link\n",
		mb, t - f, n, all / (t - f), 100 * all / (t - f) / (r / 8) }'
grep -h "parameters" "$dir"/agent*.log | sed 's/^/  /'
grep '"event":"iteration"' "$dir/events" | sed 's/.*"n":\([0-9]*\),.*"sync_s":\([0-9.e-]*\),.*"real_s":\([0-9.]*\),.*/  it\1 sync \2 s, \3 s/'
grep -E "copy|join" "$dir/agent3.log" "$dir/controller.err" | sed 's/^[^:]*://; s/^/  /'
