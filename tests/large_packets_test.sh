#!/bin/bash
# A link passes small packets and loses large ones. Tunnels with a smaller MTU do this if ICMP messages are lost. Six
# machines are network namespaces on one switch. For one direction of one pair, the receiver drops packets of 1,200
# bytes and more. There are three cases. In the first, the pair loses packets before the links are measured. In the
# second, its nodes are in two stages that follow each other in a path. In the third, its nodes are replicas of one
# stage. The run continues without the link, and the journal names the cause. When large packets pass again, the run
# uses the link again. verify checks each case.
. "$(dirname "$0")/lib.sh"
. tests/wan/switch.sh
need skippipe-verify iptables sqlite3
drops() { in_machine "$2" iptables -t raw -A PREROUTING -s "$(address "$1")" -m length --length 1200:65535 -j DROP; }
passes() { in_machine "$1" iptables -t raw -F PREROUTING; }
stage_of() { grep "\"event\":\"node\",\"node\":$1," "$dir/events" | tail -n 1 | field stage; }
notes() { sqlite3 "$dir/run/run.db" 'select text from note'; }
goes_on() { machines_progress "$1" 120; }
names_the_cause() { # a new connection finds the cause, so this takes some seconds after the cut
	local end=$((SECONDS + 60))
	until notes | grep -q "small messages pass, large ones do not: MTU?"; do
		[ $SECONDS -lt $end ] || die "the journal does not name the cause"
		sleep 0.2
	done
}
wait_event() { # wait_event WORDS: waits until an event contains the words
	local end=$((SECONDS + 90))
	until grep -q "$1" "$dir/events"; do [ $SECONDS -lt $end ] || die "no event with: $1"; sleep 0.1; done
}
begin() {
	rm -rf "$dir/run"
	machines_controller --agents 6 --stages 2,2,2 --skip 1 --eval-every 0
	for i in $(seq 0 5); do machines_agent "$i"; done
}
end() {
	kill -TERM $controller_pid
	wait $controller_pid || die "controller: exit status $?"
	check_verify "$dir/run" 5
	machines_end_agents
}
machines_begin 6
drops 1 3 || skip "no right to change iptables"

begin
goes_on 4
names_the_cause
notes | grep -q 'n01 .* cannot reach n03' || die "the measurement did not find the link"
passes 3
end

begin
goes_on 3
# Reads the nodes of the first link of a path in the newest plan.
read -r from to < <(sed 's/.*"microbatches"//' "$(find "$dir/run/plans" -name '*.json' | sort | tail -n 1)" |
	grep -o '"path": *\[[0-9, ]*\]' | tr -dc '0-9,\n' | tr ',' ' ' | awk '{ print $1, $2; exit }')
drops "$from" "$to"
wait_event '"event":"link".*"state":"cut"'
goes_on 6
names_the_cause
grep -q '"event":"link".*"state":"back"' "$dir/events" && die "the link is used again, and loses large packets"
passes "$to"
wait_event '"event":"link".*"state":"back"'
goes_on 3
end

begin
goes_on 3
to=5
for i in $(seq 0 4); do [ "$(stage_of "$i")" = "$(stage_of 5)" ] && from=$i; done
drops "$from" "$to"
wait_event '"event":"node".*"state":"dead"'
goes_on 6
names_the_cause
passes "$to"
out=$(grep '"event":"node".*"state":"dead"' "$dir/events" | field node | head -n 1)
wait_event "\"event\":\"node\",\"node\":$out,.*\"state\":\"syncing\",\"why\":\"fetching weights\""
goes_on 3
end
