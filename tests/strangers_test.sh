#!/bin/bash
# Strangers without a key connect, send the first bytes of a connection, and stay connected. There are more strangers
# than files that the controller may open. Commits continue, the controller makes a plan without an agent that is killed
# meanwhile, and a new agent becomes a node.
#
#     tests/strangers_test.sh [--long]
#
# --long: ten thousand strangers for two minutes.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
sk=$bin/skippipe
strangers=1500 files=1024 seconds=0
[ "${1:-}" = --long ] && { strangers=10000 files=8192 seconds=120; }
[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge $((strangers + 100)) ] || skip "not enough files to play strangers"

for who in controller $(seq -f agent%g 0 5); do
	"$sk" keygen "$dir/$who.key" >"$dir/$who.pub" || die "keygen"
done
for i in $(seq 0 5); do
	"$sk" admit "$dir/admitted" "$(cat "$dir/agent$i.pub")" --role agent --name "agent$i" || die "admit"
done
(ulimit -n $files; exec "$sk" controller --run-dir "$dir/run" --key "$dir/controller.key" --admitted "$dir/admitted" \
	--agents 6 --stages 2,2,2 --skip 1 --iterations 100000 --time-scale 0 --eval-every 0 --format jsonl --gather-s 120 \
	>"$dir/events" 2>"$dir/controller.err") &
controller=$!
started+=($controller)
for _ in $(seq 100); do grep -qs 'listening at' "$dir/controller.err" && break; sleep 0.1; done
address=$(sed -n 's,.*listening at \(tcp://[^ ]*\).*,\1,p' "$dir/controller.err")
[ -n "$address" ] || die "the controller does not say where it listens"
agents=()
join() { # join N: starts the agent of node N
	"$sk" agent --join "$address" --controller-key "$(cat "$dir/controller.pub")" --key "$dir/agent$1.key" \
		--node "$1" --listen tcp://127.0.0.1:0 >"$dir/agent$1.out" 2>>"$dir/agent$1.err" &
	agents[$1]=$!
	started+=($!)
}
for i in $(seq 0 5); do join "$i"; done
wait_for "$dir/events" 3 $controller 120
state_of() { grep '"event":"node"' "$dir/events" | grep "\"node\":$1," | tail -n 1 | field state; }
next() { # waits for N more commits
	wait_for "$dir/events" $(($(count "$dir/events" iteration) + $1)) $controller 120
}

# ---- the strangers connect and stay
(
	trap '' PIPE
	trap - EXIT
	ulimit -n "$(ulimit -Hn)"
	for _ in $(seq $strangers); do
		exec {fd}<>"/dev/tcp/127.0.0.1/${address##*:}" || continue
		printf '\0SP\0\0\x30\0\0' >&$fd
	done 2>/dev/null
	: >"$dir/here"
	exec sleep 1000
) &
crowd=$!
started+=($crowd)
for _ in $(seq 600); do [ -e "$dir/here" ] && break; sleep 0.1; done
[ -e "$dir/here" ] || die "the strangers did not come"
next 5
held=$(find "/proc/$controller/fd" -mindepth 1 2>/dev/null | wc -l)
[ "$held" -lt $((files * 15 / 16)) ] || die "the controller holds $held of $files files"

# ---- an agent dies; its next process can join when the controller has ended silent connections
before=$(grep -c '"event":"plan"' "$dir/events")
kill -KILL "${agents[5]}"
for _ in $(seq 300); do [ "$(state_of 5)" = '"dead"' ] && break; sleep 0.1; done
[ "$(state_of 5)" = '"dead"' ] || die "the death of an agent is not noticed"
next 10
[ "$(grep -c '"event":"plan"' "$dir/events")" -gt "$before" ] || die "it is not planned around"
for _ in $(seq 900); do grep -q 'refused connections.*too many connections' "$dir/controller.err" && break; sleep 0.1; done
grep -q 'refused connections.*too many connections' "$dir/controller.err" || die "the journal does not report them"
join 5
for _ in $(seq 900); do [ "$(state_of 5)" = '"live"' ] && break; sleep 0.1; done
[ "$(state_of 5)" = '"live"' ] || die "a new agent finds no place"
sleep $seconds
next 5
for i in $(seq 0 4); do [ "$(state_of "$i")" = '"live"' ] || die "node $i is $(state_of "$i")"; done
kill -TERM $controller
wait $controller || die "controller: exit status $?"
check_verify "$dir/run" 6
