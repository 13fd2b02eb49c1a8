#!/bin/bash
# `skippipe fleet` with six machines such as people rent, on the wide-area test bed. Each machine has a real sshd:
#
#   plain   an ordinary machine
#   fire    a firewall drops everything except ssh and answers to the machine's own connections
#   mapped  a container; its provider maps random outside ports to it. The environment of the container's first process
#           names these ports
#   left    behind one outside address together with right. The router forwards port 7701 to left, but not for
#           connections that come from behind the router
#   right   the router forwards another port, which the file of hosts gives as `advertise`
#   old     a Debian 11 system, with its libraries, sshd and systemd. A demo of the bundle runs there first
#
# `up` starts all six, and the run trains with those that can be reached. doctor names the closed port and the machine
# that must open it. Once the port is open, that machine is a spare, and takes a killed node's place in the next
# iteration. An agent drains at SIGTERM, no task runs again, and verify agrees. `down` leaves no process and no file but
# the run.
#
#     DEBIAN11=1 tests/fleet_bed_test.sh
#
# With DEBIAN11=1 the script downloads Debian 11, which takes a minute or two. Without it, or if this machine cannot make
# a Debian system, `old` has this machine's libraries.
. "$(dirname "$0")/lib.sh"
. tests/wan/bed.sh
. tests/wan/machines.sh
. tests/debian.sh
need skippipe-verify skippipe-doctor iptables sqlite3
debian11=${DEBIAN11:-}
[ -z "$debian11" ] || can_make_debian || { debian11= && echo "no Debian 11: $debian_why"; }

bed_places Oslo Oslo Lisbon Lisbon Oslo >"$dir/network.json"
bed_start --cluster "$dir/network.json"
machines_begin
plain=0 fire=1 mapped=2 router=3 old=4
in_net() { ip netns exec "$bed_tag$1" "${@:2}"; }
outside() { ip -n "$bed_tag$1" -o route get "${bed_address[bed_nodes]}" | sed 's/.* dev \([^ ]*\).*/\1/'; }
rule() { in_net "$1" iptables "${@:2}" 2>"$dir/iptables.err" || skip "no right to use iptables: $(cat "$dir/iptables.err")"; }

# The firewall of a cloud drops packets without an answer.
rule $fire -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
rule $fire -A INPUT -i lo -j ACCEPT
rule $fire -A INPUT -p tcp --dport 22 -j ACCEPT
rule $fire -A INPUT -j DROP

# Only the ports that the provider maps can be reached from outside, not the container's own ports.
rule $mapped -t mangle -A PREROUTING -i "$(outside $mapped)" -p tcp -m multiport --dports 22,7701 -j DROP
rule $mapped -t nat -A PREROUTING -p tcp --dport 40022 -j REDIRECT --to-ports 22
rule $mapped -t nat -A PREROUTING -p tcp --dport 40123 -j REDIRECT --to-ports 7701

# Two machines behind a router.
in_net $router sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' || skip "no right to set up a network namespace"
ip -n "$bed_tag$router" link add inner type bridge && ip -n "$bed_tag$router" addr add 10.9.0.1/24 dev inner &&
	ip -n "$bed_tag$router" link set inner up || skip "no right to make a bridge"
out=$(outside $router)
behind() { # behind NAME N SSH-PORT AGENT-PORT: makes a namespace with address 10.9.0.N
	local net=$bed_tag$1
	ip netns add "$net" || skip "no right to make a network namespace"
	undo+=("ip netns del $net")
	ip link add "v$1" netns "$bed_tag$router" type veth peer name outer netns "$net" || skip "no right to make a veth pair"
	ip -n "$bed_tag$router" link set "v$1" master inner up
	ip -n "$net" link set lo up
	ip -n "$net" addr add "10.9.0.$2/24" dev outer
	ip -n "$net" link set outer up
	ip -n "$net" route add default via 10.9.0.1
	rule $router -t nat -A PREROUTING -i "$out" -p tcp --dport "$3" -j DNAT --to-destination "10.9.0.$2:22"
	rule $router -t nat -A PREROUTING -i "$out" -p tcp --dport "$4" -j DNAT --to-destination "10.9.0.$2:7701"
	machine "$1" "$net" 22
}
behind left 2 40022 7701
behind right 3 40023 40702
rule $router -t nat -A POSTROUTING -o "$out" -j MASQUERADE

machine plain $plain 22
machine fire $fire 22
machine mapped $mapped 22 VAST_TCP_PORT_7701=40123 VAST_TCP_PORT_22=40022 "PUBLIC_IPADDR=${bed_address[mapped]}"
fleet_bundle
if [ -n "$debian11" ]; then
	make_debian bullseye "$dir/debian11" openssh-server,systemd-sysv,dbus-user-session,libpam-systemd,iproute2
	run_bundle "$dir/debian11" "$archive"
	machine_boot old $old "$dir/debian11"
else
	machine old $old 22
fi
machines_ssh >"$dir/home/hub/.ssh/config"
cat docs/*.md >"$dir/home/hub/text.txt"
cat >"$dir/home/hub/fleet.txt" <<END
root@${bed_address[plain]}         name=plain  place=oslo
root@${bed_address[fire]}          name=fire   place=oslo
root@${bed_address[mapped]}:40022  name=mapped place=lisbon
root@${bed_address[router]}:40022  name=left   place=lisbon
root@${bed_address[router]}:40023  name=right  place=lisbon advertise=tcp://${bed_address[router]}:40702
root@${bed_address[old]}           name=old    place=oslo
END
undo+=('hub "$bin/skippipe" fleet down fleet.txt')
machines_wait

# ---- up. The limit of silence is long, because busy cores may delay heartbeats and no node must be declared dead. The
# only node of stage 0 has nine of twelve layers. Its microbatches therefore follow so slowly that they never meet in a
# later stage, and a second node in a later stage shortens no iteration.
begin=$(date +%s.%N)
fleet up 0 up fleet.txt "${bundle[@]}" -- --agents 5..6 --stages 1,1,2,2 --cut 9,1,1,1 --skip 0 --model tiny --corpus text.txt --iterations 100000 \
	--checkpoint-every 2 --format jsonl --silence-ms 10000
cat "$dir/up.out"
for n in plain fire mapped left right old; do grep -q "^$n .* joined as n[0-5]" "$dir/up.out" || die "$n has not joined"; done
controller=$(sed 's/ .*//' "$dir"/home/hub/.skippipe/fleet/*/controller/pid)
log=$(echo "$dir"/home/hub/.skippipe/fleet/*/controller/log)
wait_for "$log" 1 "$controller" 120
awk -v begin="$begin" -v end="$(date +%s.%N)" 'BEGIN { printf "%5.1f s  the first commit\n", end - begin }'
node_of() { sed -n "s/^$1 .* joined as n\([0-5]\).*/\1/p" "$dir/up.out" | tail -n 1; }
node_events() { grep '"event":"node"' "$log" | grep "\"node\":$1,"; }
state_of() { node_events "$1" | tail -n 1 | field state | tr -d '"'; }
until_state() { # until_state NAME STATE SECONDS: waits until the machine's node is in this state
	local i
	for i in $(seq $(($3 * 10))); do [ "$(state_of "$(node_of "$1")")" = "$2" ] && return; sleep 0.1; done
	die "$1 is $(state_of "$(node_of "$1")"), and not $2, after $3 s"
}
more() { # more ITERATIONS: waits for this number of further iterations
	wait_for "$log" $(($(count "$log" iteration) + $1)) "$controller" 120
}

# ---- what doctor says, and who takes part
hub "$bin/skippipe" doctor run >"$dir/doctor.out" 2>"$dir/doctor.err"
[ $? = 2 ] || die "doctor finds no error"
tr -s ' \n' ' ' <"$dir/doctor.out" >"$dir/doctor.line"
grep -qE "error reachability n0[0-5] \(fire, oslo\) cannot be reached by any other node: ${bed_address[fire]} port 7701: [^:]*: no answer remedy: on the side of n0[0-5] \(fire, oslo\): open that port" "$dir/doctor.line" ||
	{ cat "$dir/doctor.out"; die "doctor does not name the closed port and its side"; }
[ "$(grep -c '^[a-z]* *reachability' "$dir/doctor.out")" = 1 ] || { cat "$dir/doctor.out"; die "others cannot be reached"; }
[ "$(state_of "$(node_of fire)")" = joining ] || die "fire is $(state_of "$(node_of fire)"), though nobody reaches it"
for n in plain mapped left right old; do until_state $n live 60; done
unit() { hub ssh -n "root@${bed_address[old]}" systemctl --user list-units --plain --no-legend 'skippipe*'; }
if [ -n "$debian11" ]; then
	grep -q '^old .*its agent runs, a unit of systemd' "$dir/up.out" || die "the agent of old is no unit of systemd"
	unit | grep -q '\.service .* running' || die "systemd of old has no such unit: $(unit)"
fi
grep -q "tensors at tcp://${bed_address[mapped]}:40123," "$dir"/home/mapped/.skippipe/fleet/*/agent-mapped/log ||
	die "mapped does not use the port that its provider maps"

# ---- the port is opened
rule $fire -I INPUT -p tcp --dport 7701 -j ACCEPT
until_state fire live 90

# ---- fire is a spare, and takes the place of a node that is killed
spare=$(node_of fire)
# On a busy machine, measured times may say that an iteration is shorter with fire. Then fire is in use already.
node_events "$spare" | tail -n 1 | grep -q '"why":"spare: ' || echo "fire is no spare: $(node_events "$spare" | tail -n 1)"
more 2
agent_pid_of() { sed 's/ .*//' "$dir/home/$1"/.skippipe/fleet/*/"agent-$1"/pid; }
newest() { grep '"event":"commit"' "$log" | field n | tail -n 1; }
computes() { # computes NODE ITERATION: prints how many tasks of the node count in the iteration, from the record
	sqlite3 -cmd '.timeout 10000' "$dir/home/hub/run/run.db" "SELECT count(*) FROM task WHERE node = $1 AND iteration = $2 AND counted"
}
stage_of() { node_events "$(node_of "$1")" | tail -n 1 | field stage; }
of_stage() { # of_stage STAGE: prints the names of the stage's live nodes except fire; `old` comes last
	local n
	for n in plain mapped left right old; do
		[ "$(state_of "$(node_of "$n")") $(stage_of "$n")" = "live $1" ] && echo "$n"
	done
}
victim=$(of_stage "$(stage_of fire)")
# The record may not have the tasks of the newest commit yet.
before=$(($(newest) - 1))
[ "$(computes "$(node_of "$victim")" $before)" -gt 0 ] || die "the record has no tasks of $victim in it$before"
[ "$(computes "$spare" $before)" = 0 ] || echo "fire computes in it$before, before a node is lost"
on_machine "$victim" kill -KILL "$(agent_pid_of "$victim")" || die "the agent of $victim is not there"
until_state "$victim" dead 60
next=$(($(node_events "$(node_of "$victim")" | tail -n 1 | field iteration) + 2))
more 3
[ "$(computes "$spare" $next)" -gt 0 ] || # no other node of its stage is left
	die "fire does not compute in it$next, the iteration after that in which $victim was killed"
echo "$victim was killed in it$((next - 1)): fire computes $(computes "$spare" $next) tasks of it$next"

# ---- an agent drains at SIGTERM
begun=$(($(wc -l <"$log") + 1))
since() { tail -n "+$begun" "$log"; }
# Stages 2 and 3 have two nodes each. The script takes a node of the stage in which fire is not.
leaver=$(of_stage $((5 - $(stage_of fire))) | head -n 1)
on_machine "$leaver" kill -TERM "$(agent_pid_of "$leaver")" || die "the agent of $leaver is not there"
until_state "$leaver" left 60
more 3
since | grep '"event":"recovery"' && die "work ran again"
again=$(since | grep '"event":"iteration"' | field tasks_again | sort -u)
[ "$again" = 0 ] || die "tasks ran again: $again"
[ "$(grep '"event":"node"' "$log" | grep -c '"state":"dead"')" = 1 ] || die "a node was declared dead that was not killed"

# ---- down
fleet down 0 down fleet.txt
cat "$dir/down.out"
for n in plain fire mapped left right old; do
	grep -q "^$n  *nothing runs" "$dir/down.out" || die "it does not say that nothing runs on $n"
done
if [ -n "$debian11" ]; then
	[ -z "$(unit)" ] || die "a unit is left on old: $(unit)"
	pgrep --ns "${machine_pid[old]}" --nslist pid -fa skippipe && die "a process is left on old"
	unset 'machine_pid[old]'
fi
for n in "${!machine_pid[@]}"; do
	left=$(machine_processes "$n") && die "a process is left on $n: $left"
done
[ -z "$(ip netns pids "$bed_tag$bed_nodes")" ] || die "a process is left on the hub: $(ip netns pids "$bed_tag$bed_nodes")"
[ -z "$(fleet_leftovers)" ] || { fleet_leftovers; die "files are left"; }
hub "$bin/skippipe" verify run --format json >"$dir/verify.json" 2>"$dir/verify.err" || { cat "$dir/verify.json"; die "verify finds a difference"; }
cat "$dir/verify.json"
