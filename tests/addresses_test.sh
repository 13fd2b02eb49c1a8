#!/bin/bash
# Names and addresses that change. The controller's name has a dead first address. Then one agent's machine gets another
# address, and later the controller's, while all processes live and only the names stay. Everything is found again.
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
named() { # named N COMMAND...: a process on a machine that sees this hosts file; $named_pid
	local n=$1
	shift
	ip netns exec "$(namespace "$n")" unshare -m sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' "$dir/hosts" "$@" &
	named_pid=$!
	started+=($named_pid)
}
waits() { # waits SECONDS WHAT COMMAND...
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do [ $SECONDS -lt $end ] || die "$what"; sleep 0.1; done
}
goes_on() { wait_for "$dir/events" $(($(count "$dir/events" iteration) + $1)) $controller_pid 60; }
state_of() { grep "\"event\":\"node\",\"node\":$1," "$dir/events" | tail -n 1 | field state; }
is() { [ "$(state_of "$1")" = "\"$2\"" ]; }
has() { grep -q -- "$2" "$1"; }
names 10.78.0.1 "$(address 1)"
unshare -m true 2>/dev/null || skip "no right to make a mount namespace"

# Nobody listens yet: the agent names the name, the addresses and the causes.
named 0 "$bin/skippipe" agent --join tcp://boss:7700 --controller-key "$dir/controller.pub" --key "$dir/agent0.key" \
	--listen tcp://0.0.0.0:7710 --advertise tcp://m0:7710 --orphan-s 30 >"$dir/alone.out" 2>"$dir/alone.err"
alone=$named_pid
waits 20 "no cause" has "$dir/alone.err" "boss port 7700: .*10.78.0.1: Connection refused"
grep -q "10.78.0.250: " "$dir/alone.err" || die "the first address is not named"
kill $alone
wait $alone

named controller "$bin/skippipe" controller --run-dir "$dir/run" --listen tcp://0.0.0.0:7700 --key "$dir/controller.key" \
	--admitted "$dir/admitted" --format jsonl --agents 4 --stages 2,2 --skip 0 --eval-every 0 \
	>"$dir/events" 2>"$dir/controller.err"
controller_pid=$named_pid
for i in 0 1 2 3; do
	named "$i" "$bin/skippipe" agent --join tcp://boss:7700 --controller-key "$dir/controller.pub" \
		--key "$dir/agent$i.key" --node "$i" --listen tcp://0.0.0.0:7710 --advertise "tcp://m$i:7710" \
		>"$dir/agent$i.out" 2>"$dir/agent$i.err"
	agent_pids[i]=$named_pid
done
goes_on 3

ip -n "$(namespace 1)" addr del "$(address 1)/24" dev eth0
ip -n "$(namespace 1)" addr add 10.78.0.61/24 dev eth0
names 10.78.0.1 10.78.0.61
waits 60 "the controller did not miss the machine" is 1 dead
waits 25 "the machine with another address does not take part again" is 1 live
goes_on 3

ip -n "$(namespace controller)" addr del 10.78.0.1/24 dev switch
ip -n "$(namespace controller)" addr add 10.78.0.2/24 dev switch
names 10.78.0.2 10.78.0.61
sleep 1
goes_on 5
for i in 0 1 2 3; do waits 60 "agent $i does not find the controller" is "$i" live; done
kill -TERM $controller_pid
wait $controller_pid || die "controller: exit status $?"
check_verify "$dir/run" 4
