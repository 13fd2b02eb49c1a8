#!/bin/bash
# Several machines on one: the controller is in one network namespace, agents are in two other namespaces, and a
# console is in a fourth namespace. veth pairs with their own addresses join them. All programs are started by hand as
# on real machines, and keys are admitted with `skippipe admit`. During the run, links are cut and restored.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify ip
sk=$bin/skippipe
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
tag=sk$$
ip netns add "$tag-c" 2>/dev/null || skip "no right to make a network namespace"
undo+=("ip netns del $tag-c")

# The controller's machine also routes between the other machines. Link N joins it (10.77.N.1) to machine N (10.77.N.2).
ip netns exec "$tag-c" sh -c 'ip link set lo up; echo 1 >/proc/sys/net/ipv4/ip_forward' ||
	skip "no right to set up a network namespace"
for n in 1 2 3; do
	ip netns add "$tag-$n" || die "namespace $n"
	undo+=("ip netns del $tag-$n")
	ip link add "$tag.$n" netns "$tag-c" type veth peer name eth0 netns "$tag-$n" ||
		skip "no right to make a veth pair"
	ip -n "$tag-c" addr add "10.77.$n.1/24" dev "$tag.$n"
	ip -n "$tag-c" link set "$tag.$n" up
	ip -n "$tag-$n" addr add "10.77.$n.2/24" dev eth0
	ip -n "$tag-$n" link set eth0 up
	ip -n "$tag-$n" link set lo up
	ip -n "$tag-$n" route add default via "10.77.$n.1"
done

for who in controller console $(seq -f agent%g 0 5); do
	"$sk" keygen "$dir/$who.key" >"$dir/$who.pub" || die "keygen"
done
for i in $(seq 0 5); do
	"$sk" admit "$dir/admitted" "$(cat "$dir/agent$i.pub")" --role agent --name "agent$i" || die "admit"
done
"$sk" admit "$dir/admitted" "$(cat "$dir/console.pub")" --role console --name operator || die "admit"

ip netns exec "$tag-c" "$sk" controller --run-dir "$dir/run" --listen tcp://10.77.1.1:7701 \
	--key "$dir/controller.key" --admitted "$dir/admitted" \
	--agents 6 --stages 2,2,2 --skip 1 --iterations 60 --time-scale 0 --format jsonl \
	>"$dir/events" 2>"$dir/controller.err" &
controller=$!
started+=($controller)
agents=()
for i in $(seq 0 5); do
	n=$((i % 2 + 1))
	ip netns exec "$tag-$n" "$sk" agent --join tcp://10.77.1.1:7701 \
		--controller-key "$(cat "$dir/controller.pub")" --key "$dir/agent$i.key" \
		--listen "tcp://10.77.$n.2:$((7710 + i))" >"$dir/agent$i.out" 2>"$dir/agent$i.err" &
	agents+=($!)
	started+=($!)
done

if [ -x "$bin/skippipe-console" ]; then
	wait_for "$dir/events" 2 $controller 120
	ip netns exec "$tag-3" timeout 60 "$sk" console --connect tcp://10.77.1.1:7701 --plain \
		--controller-key "$(cat "$dir/controller.pub")" --key "$dir/console.key" \
		>"$dir/console.out" 2>"$dir/console.err" </dev/null &
	console=$!
	started+=($console)
fi

# A link is down for three seconds, first the controller's and later the agents'. Nodes that need a node behind this
# link wait, and continue when the link is back.
cut() { # cut ITERATION DOWN... : brings a link down and up again
	local n=$1
	shift
	wait_for "$dir/events" "$n" $controller 180
	ip "$@" down && sleep 3 && ip "$@" up || die "the wire cannot be cut"
}
cut 3 -n "$tag-c" link set "$tag.1"
cut 25 -n "$tag-2" link set eth0
ip -n "$tag-2" route add default via 10.77.2.1

wait $controller || die "controller: exit status $?"
grep '"event":"node"' "$dir/events" | grep -q '"state":"dead"' || die "it was not noticed that a link was cut"
[ "$(count "$dir/events" commit)" = 60 ] || die "$(count "$dir/events" commit) commits"
for i in $(seq 0 5); do
	for _ in $(seq 100); do kill -0 "${agents[i]}" 2>/dev/null || break; sleep 0.1; done
	kill -0 "${agents[i]}" 2>/dev/null && die "agent $i goes on without its controller"
done
if [ -x "$bin/skippipe-console" ]; then
	grep -qE '(it|iteration) ?[0-9]+' "$dir/console.out" || { cat "$dir/console.out"; die "the console saw nothing"; }
fi
check_verify "$dir/run" 6
