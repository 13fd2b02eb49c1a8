#!/bin/bash
# Machines with IPv6 addresses only. Agents reach the controller by an address and by a name. They reach one another by
# an advertised address, an advertised name, and the address at which an agent listens. One agent and the console use
# link-local addresses, with the names of their own interfaces. One agent uses IPv4 to reach the controller, which
# listens at [::]. Then a machine gets another address, and the other machines find it by its name.
. "$(dirname "$0")/lib.sh"
. tests/wan/switch.sh
need skippipe-verify unshare
[ -e /proc/net/if_inet6 ] || skip "no IPv6"
machines_begin 4
six() { if [ "$1" = controller ]; then echo fd00:78::1; else echo "fd00:78::$(($1 + 10))"; fi; }
only_six() { # only_six N DEVICE: removes the machine's IPv4 address and adds an IPv6 address
	ip -n "$(namespace "$1")" -4 addr flush dev "$2"
	ip -n "$(namespace "$1")" addr add "$(six "$1")/64" dev "$2" nodad || skip "no right to add an IPv6 address"
}
only_six controller switch
for i in 0 1 2 3; do only_six $i eth0; done
link_local() { # link_local N DEVICE: prints the device's link-local address
	ip -n "$(namespace "$1")" -6 addr show dev "$2" scope link | sed -n 's/.*inet6 \([^/]*\).*/\1/p' | head -n 1
}
names() { # names M2-ADDRESS: rewrites the hosts file that all machines see
	printf '%s\n' "::1 localhost" "fd00:78::99 boss" "$(six controller) boss" "$1 m2" >"$dir/hosts"
}
agent() { # agent N OPTION...: starts the agent of machine N
	machines_named "$1" "$bin/skippipe" agent --controller-key "$dir/controller.pub" --key "$dir/agent$1.key" --node "$1" "${@:2}" \
		>"$dir/agent$1.out" 2>"$dir/agent$1.err"
	agent_pids[$1]=$named_pid
}
names "$(six 2)"
boss_local=$(link_local controller switch)
[ -n "$boss_local" ] || die "no link-local address"
lone_agent() { "$bin/skippipe" agent --join "$1" --listen tcp://127.0.0.1:0 --controller-key "$dir/controller.pub" --key "$dir/agent0.key"; }
export -f lone_agent
export bin dir
expect 1 'no interface nowhere0' bash -c "lone_agent 'tcp://[$boss_local%nowhere0]:7700'"
expect 1 'needs the name of its interface' bash -c "lone_agent 'tcp://[$boss_local]:7700'"
unshare -m true 2>/dev/null || skip "no right to make a mount namespace"

# Nobody listens at the controller's name yet. The agent reports each of its addresses, and why each failed.
agent 0 --join tcp://boss:7700 --listen "tcp://[::]:7710" --advertise "tcp://[$(six 0)]:7710"
machines_wait 20 "no cause" grep -q -- "boss port 7700: .*$(six controller): Connection refused" "$dir/agent0.err"
grep -q "fd00:78::99: " "$dir/agent0.err" || die "the first address is not named"
kill "${agent_pids[0]}"
wait "${agent_pids[0]}"

# [::] accepts IPv4 too, even if the system's setting says otherwise.
in_machine controller sysctl -qw net.ipv6.bindv6only=1
machines_named controller "$bin/skippipe" controller --run-dir "$dir/run" --listen "tcp://[::]:7700" --key "$dir/controller.key" \
	--admitted "$dir/admitted" --format jsonl --agents 4 --stages 2,2 --skip 0 --eval-every 0 \
	>"$dir/events" 2>"$dir/controller.err"
controller_pid=$named_pid
agent 0 --join tcp://boss:7700 --listen "tcp://[::]:7710" --advertise "tcp://[$(six 0)]:7710"
ip -n "$(namespace controller)" addr add 10.78.0.1/24 dev switch
ip -n "$(namespace 1)" addr add "$(address 1)/24" dev eth0
agent 1 --join tcp://10.78.0.1:7700 --listen "tcp://[$(six 1)]:7710"
agent 2 --join tcp://boss:7700 --advertise tcp://m2:7701 # this agent listens at the default address
agent 3 --join "tcp://[$boss_local%eth0]:7700" --listen "tcp://[$(link_local 3 eth0)%eth0]:7710"
machines_progress 3
for i in 0 1 2 3; do machines_is $i live || die "agent $i does not take part"; done
if [ -x "$bin/skippipe-console" ]; then
	in_machine 3 timeout 60 "$bin/skippipe" console --connect "tcp://[$boss_local%eth0]:7700" --plain \
		--controller-key "$dir/controller.pub" --key "$dir/console.key" >"$dir/console.out" 2>"$dir/console.err" </dev/null &
	console=$!
	started+=($console)
	machines_wait 30 "the console saw nothing" grep -qsE "(it|iteration) ?[0-9]+" "$dir/console.out"
	kill $console
fi
# An agent announces its link-local address without the zone, because the zone is a name on its own machine only.
grep -q "tensors at tcp://\[$(link_local 3 eth0)\]:7710" "$dir/agent3.err" || die "the announced address"

ip -n "$(namespace 2)" addr del "$(six 2)/64" dev eth0
ip -n "$(namespace 2)" addr add fd00:78::61/64 dev eth0 nodad
names fd00:78::61
machines_wait 60 "the controller did not miss the machine" machines_is 2 dead
machines_wait 25 "the machine with another address does not take part again" machines_is 2 live
machines_progress 3
kill -TERM $controller_pid
wait $controller_pid || die "controller: exit status $?"
check_verify "$dir/run" 4
