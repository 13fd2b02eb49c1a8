#!/bin/bash
# Names and addresses that change. The first address of the controller's name is dead. Then one agent's machine gets
# another address, and later the controller's machine does; all processes keep running and the names stay the same. The
# processes must find each other again. Meanwhile a cloned machine, which has another agent's key, must disturb nobody.
# An agent that is killed and started again gets its node back. If an agent announces 127.0.0.1, which every machine
# takes for itself, the journal names the agent.
. "$(dirname "$0")/lib.sh"
. tests/wan/switch.sh
need skippipe-verify unshare
machines_begin 4
names() { # names CONTROLLER-ADDRESS M1-ADDRESS: rewrites the hosts file that all machines see
	cat >"$dir/hosts" <<END
127.0.0.1 localhost
10.78.0.250 boss
$1 boss
$(address 0) m0
$2 m1
$(address 2) m2
$(address 3) m3
END
}
names 10.78.0.1 "$(address 1)"
unshare -m true 2>/dev/null || skip "no right to make a mount namespace"

# Nobody listens at the controller's name yet. The agent reports the name, its addresses, and why each of them failed.
machines_named 0 "$bin/skippipe" agent --join tcp://boss:7700 --controller-key "$dir/controller.pub" --key "$dir/agent0.key" \
	--listen tcp://0.0.0.0:7710 --advertise tcp://m0:7710 --orphan-s 30 >"$dir/alone.out" 2>"$dir/alone.err"
alone=$named_pid
machines_wait 20 "no cause" grep -q -- "boss port 7700: .*10.78.0.1: Connection refused" "$dir/alone.err"
grep -q "10.78.0.250: " "$dir/alone.err" || die "the first address is not named"
kill $alone
wait $alone

machines_named controller "$bin/skippipe" controller --run-dir "$dir/run" --listen tcp://0.0.0.0:7700 --key "$dir/controller.key" \
	--admitted "$dir/admitted" --format jsonl --agents 4 --stages 2,2 --skip 0 --eval-every 0 \
	>"$dir/events" 2>"$dir/controller.err"
controller_pid=$named_pid
agent() { # agent N NAME KEY OPTION...: starts an agent on machine N as node KEY
	machines_named "$1" "$bin/skippipe" agent --join tcp://boss:7700 --controller-key "$dir/controller.pub" \
		--key "$dir/agent$3.key" --node "$3" --listen tcp://0.0.0.0:7710 --advertise "tcp://m$1:7710" "${@:4}" \
		>"$dir/$2.out" 2>"$dir/$2.err"
}
for i in 0 1 2 3; do
	agent "$i" "agent$i" "$i"
	agent_pids[i]=$named_pid
done
machines_progress 3
lost() { grep -c '"event":"node".*"state":"dead"' "$dir/events"; }
lost_one() { [ "$(lost)" != "$before" ]; }
before=$(lost)
agent 1 clone 2 --listen tcp://0.0.0.0:7711 --advertise tcp://m1:7711
clone=0
wait "$named_pid" || clone=$?
[ $clone = 3 ] || { cat "$dir/clone.err"; die "the clone's exit status is $clone"; }
grep -q "tcp://m2:7710 .* has the same key and runs as n02" "$dir/clone.err" || die "the clone does not say why it ends"
grep -q "n02 (agent2): two processes have its key: tcp://m2:7710 .*, tcp://m1:7711 " "$dir/controller.err" || die "no alert about the clone"
grep -q "n02 (agent2): both have the key $(cat "$dir/agent2.pub")" "$dir/controller.err" || die "the key is not named"
machines_progress 2
lost_one && die "the clone disturbed the run"

kill -KILL "${agent_pids[2]}"
agent 2 agent2 2 --advertise tcp://127.0.0.1:7710
agent_pids[2]=$named_pid
machines_wait 30 "the killed agent is not missed" lost_one
machines_wait 30 "nobody says that the address means the machine itself" \
	grep -q "n02 ([^)]*) warning: tcp://127.0.0.1:7710 means the machine itself" "$dir/controller.err"
kill -TERM "${agent_pids[2]}"
agent 2 agent2 2
agent_pids[2]=$named_pid
machines_wait 30 "the agent that was started again does not take part" machines_is 2 live

ip -n "$(namespace 1)" addr del "$(address 1)/24" dev eth0
ip -n "$(namespace 1)" addr add 10.78.0.61/24 dev eth0
names 10.78.0.1 10.78.0.61
machines_wait 60 "the controller did not miss the machine" machines_is 1 dead
machines_wait 25 "the machine with another address does not take part again" machines_is 1 live
machines_progress 3

ip -n "$(namespace controller)" addr del 10.78.0.1/24 dev switch
ip -n "$(namespace controller)" addr add 10.78.0.2/24 dev switch
names 10.78.0.2 10.78.0.61
sleep 1
machines_progress 5
for i in 0 1 2 3; do machines_wait 60 "agent $i does not find the controller" machines_is "$i" live; done
kill -TERM $controller_pid
wait $controller_pid || die "controller: exit status $?"
check_verify "$dir/run" 4
