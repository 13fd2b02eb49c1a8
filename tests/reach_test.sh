#!/bin/bash
# Rented machines join with one token each, and find out how the other machines can reach them. Each machine is a
# network namespace behind a router. One machine has a port that its provider maps to another port. One machine has a
# public address and a firewall. Two machines share an outside address, which cannot be reached from behind their own
# router. All machines reach one another, except that nobody reaches the machine behind the firewall. The controller
# names that machine with its address and port. The measured cluster contains the machines' names and places.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key ip iptables
sk=$bin/skippipe
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
tag=sr$$
export XDG_STATE_HOME=$dir/state
unset SKIPPIPE_JOIN PUBLIC_IPADDR RUNPOD_PUBLIC_IP
net() { ip netns exec "$tag-$1" "${@:2}"; }
make_net() {
	ip netns add "$tag-$1" 2>/dev/null || skip "no right to make a network namespace"
	undo+=("ip netns del $tag-$1")
	ip -n "$tag-$1" link set lo up
	net "$1" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' || skip "no right to set up a network namespace"
}
wire=0
join() { # join NET ADDRESS BRIDGE: connects the namespace NET to a bridge in another namespace
	wire=$((wire + 1))
	ip link add "v$wire" netns "$tag-${3%%.*}" type veth peer name "e$wire" netns "$tag-$1" || skip "no right to make a veth pair"
	ip -n "$tag-${3%%.*}" link set "v$wire" master "${3##*.}" up
	ip -n "$tag-$1" addr add "$2" dev "e$wire"
	ip -n "$tag-$1" link set "e$wire" up
}
bridge() { # bridge NET NAME [ADDRESS]: makes a bridge in the namespace NET
	ip -n "$tag-$1" link add "$2" type bridge
	ip -n "$tag-$1" link set "$2" up
	[ -z "${3:-}" ] || ip -n "$tag-$1" addr add "$3" dev "$2"
}
forward() { # forward ROUTER PORT TO: the router forwards connections from outside to a machine inside
	net "$1" iptables -t nat -A PREROUTING -i "$out" -p tcp --dport "$2" -j DNAT --to-destination "$3" || skip "iptables has no NAT"
}
for n in world hub fire router one nat left right; do make_net $n; done
bridge world lan
join hub 203.0.113.1/24 world.lan
join fire 203.0.113.3/24 world.lan
net fire iptables -A INPUT -p tcp --dport 7701 -j REJECT --reject-with tcp-reset || skip "no right to use iptables"
join router 203.0.113.2/24 world.lan
out=e$wire
bridge router in 10.1.0.1/24
join one 10.1.0.2/24 router.in
forward router 40123 10.1.0.2:7701
net router iptables -t nat -A POSTROUTING -o "$out" -j MASQUERADE
join nat 203.0.113.4/24 world.lan
out=e$wire
bridge nat in 10.1.0.1/24
join left 10.1.0.2/24 nat.in
join right 10.1.0.3/24 nat.in
forward nat 7701 10.1.0.2:7701
forward nat 7702 10.1.0.3:7702
net nat iptables -t nat -A POSTROUTING -o "$out" -j MASQUERADE
for n in one left right; do ip -n "$tag-$n" route add default via 10.1.0.1; done

token=$(net hub "$sk" invite --uses 4 2>"$dir/invite.err") || die "invite"
net hub "$sk" controller --run-dir "$dir/run" --listen tcp://0.0.0.0:7700 --measure-only --agents 4 --stages 2,2 --gather-s 60 \
	--format jsonl >"$dir/events" 2>"$dir/controller.err" &
controller=$!
started+=($controller)
agent() { # agent NAME PLACE [OPTION...]: starts an agent with the token
	SKIPPIPE_JOIN=$token net "$1" "$sk" agent --name "$1" --place "$2" --key "$dir/$1.key" "${@:3}" \
		>"$dir/$1.out" 2>"$dir/$1.err" &
	started+=($!)
}
VAST_TCP_PORT_7701=40123 PUBLIC_IPADDR=203.0.113.2 agent one eu-west
agent fire us-east
agent left eu-north
agent right eu-north --listen tcp://0.0.0.0:7702
for _ in $(seq 900); do kill -0 $controller 2>/dev/null || break; sleep 0.1; done
wait $controller || die "controller: exit status $?"

announces() { grep -q "tensors at $2, " "$dir/$1.err" || die "$1 announces: $(grep 'tensors at' "$dir/$1.err")"; }
announces one tcp://203.0.113.2:40123
announces fire tcp://203.0.113.3:7701
announces left tcp://203.0.113.4:7701
announces right tcp://203.0.113.4:7702
for n in one left right; do
	grep -qE "n0[0-3] \($n, [a-z-]*\) cannot reach n0[0-3] \(fire, us-east\).*203\.0\.113\.3.*7701.*Open that port at n0[0-3]" "$dir/controller.err" ||
		die "it does not say that $n cannot reach the firewalled machine"
done
[ "$(grep 'cannot reach' "$dir/controller.err" | grep -vc 'reach n0[0-3] (fire')" = 0 ] || die "others are not reached: $(grep 'cannot reach' "$dir/controller.err")"
for n in one fire left right; do grep -q "\"name\": *\"$n\"" "$dir/run/cluster.json" || die "the cluster does not name $n"; done
grep -q '"location": *"eu-west"' "$dir/run/cluster.json" || die "the cluster has no place"
grep '"event":"node"' "$dir/events" | grep -q '"name":"left","place":"eu-north"' || die "the events have no names"
exit 0
