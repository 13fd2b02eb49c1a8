#!/bin/bash
# Faults of a wide-area network, with the kernel's own TCP over far, lossy ways (docs/testbed.md): one process killed
# with -9, one machine that vanishes and comes back, one link cut in one direction and mended. Each is known as
# what it is, nobody else is taken for dead, a cut link costs no node, and the weights are what one process computes.
. "$(dirname "$0")/lib.sh"
. tests/wan/bed.sh
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify ip awk
bed_start --regions deploy/regions.json --agents 8 --loss 0.01 --jitter 0.3
bed_controller --agents 8 --stages 2,3,3 --skip 1 --eval-every 0 --budget 0.5
bed_agents
events=$dir/events

# The lines since the mark that have all the words: since WORD...
mark() { at=$(wc -l <"$events"); }
since() {
	local lines word
	lines=$(tail -n +$((at + 1)) "$events")
	for word; do lines=$(grep -F -- "$word" <<<"$lines"); done
	[ -z "$lines" ] || echo "$lines"
}
wait_since() { # wait_since SECONDS WORD...
	local end=$((SECONDS + $1))
	shift
	until [ -n "$(since "$@")" ]; do
		kill -0 $bed_controller_pid 2>/dev/null || die "the controller ended, waiting for: $*"
		[ $SECONDS -lt $end ] || die "in time there was no: $*"
		sleep 0.05
	done
}
iteration() { grep '"event":"iteration"' "$events" | tail -n 1 | field n; }
goes_on() { wait_since 120 "\"event\":\"iteration\",\"n\":$(($(iteration) + 2)),"; } # an iteration that began since, and another
stage_of() { grep "\"event\":\"node\",\"node\":$1," "$events" | tail -n 1 | field stage; }
dead_since() { since '"event":"node"' '"state":"dead"' | field node; }

wait_for "$events" 3 $bed_controller_pid 180
dead_are() { # dead_are WORDS NODE...: these were taken for dead since the mark, and nobody else
	local what=$1 dead
	shift
	dead=$(dead_since | sort -n | uniq | tr '\n' ' ')
	[ "$dead" = "${*:+$* }" ] || die "$what: taken for dead: ${dead:-nobody}"
}
at=0
dead_are "losses and jitter"

# A process: its connections end.
victim=
for n in $(seq 7 -1 0); do [ "$(stage_of "$n")" = 2 ] && victim=$n && break; done
mark
kill -KILL "${bed_agent_pid[victim]}" || die "agent $victim was not there"
wait_since 20 "\"event\":\"node\",\"node\":$victim," '"state":"dead"'
goes_on
dead_are "agent $victim was killed" "$victim"
since '"state":"dead"' | grep -q '"why":"hung up' || die "that its connections ended was not seen"
echo "killed: $(since '"state":"dead"' | field why)"

# A machine: nothing comes from it any more, and no connection ends.
for n in $(seq 0 7); do [ "$n" != "$victim" ] && [ "$(stage_of "$n")" = 1 ] && far=$n && break; done
mark
bed_ask node "$far" away
wait_since 20 "\"event\":\"node\",\"node\":$far," '"state":"dead"'
dead_are "node $far is away" "$far"
since '"state":"dead"' | grep -q '"why":"heartbeat lost' || die "that it is not heard was not seen"
echo "vanished: $(since '"state":"dead"' | field why)"
goes_on
bed_ask node "$far" back
wait_since 120 "\"event\":\"node\",\"node\":$far," '"state":"live"'
dead_are "node $far was away" "$far"

# A link that this iteration's plan uses, between two of them that are at work, in one direction.
read -r from to < <(sed 's/.*"microbatches"//' "$(find "$dir/run/plans" -name '*.json' | sort | tail -n 1)" |
	grep -o '"path": *\[[0-9, ]*\]' | tr -dc '0-9,\n' | tr ',' ' ' | awk '{ print $1, $2; exit }')
[ -n "$to" ] || die "no path in the newest plan"
mark
bed_ask link "$from" "$to" cut
wait_since 60 '"event":"link"' '"state":"cut"'
goes_on
dead_are "the link $from > $to is cut"
since '"event":"link"' '"state":"cut"' |
	grep -qE "\"from\":($from,\"to\":$to|$to,\"to\":$from)," || die "another link is taken for cut"
echo "cut: $(since '"event":"link"' '"state":"cut"' | head -n 1)"
bed_ask link "$from" "$to" restore
wait_since 90 '"event":"link"' '"state":"back"'
goes_on
dead_are "the link $from > $to is there again"

kill -TERM $bed_controller_pid
wait $bed_controller_pid || die "controller: exit status $?"
echo "$(iteration) iterations; $(bed_ask stats | head -n 1)"
check_verify "$dir/run" 3
