#!/bin/bash
# Faults of a wide-area network, with the kernel's own TCP over long links with losses (docs/testbed.md). One process is
# killed with -9. One machine vanishes and returns. One link takes five times as long, and one link is cut in one
# direction. One place is away for a while. The controller recognizes each fault and makes plans that avoid it. It
# declares no other node dead, it excludes no node for a cut link, and the weights equal those that one process
# computes.
#
#   tests/wan_faults_test.sh           8 agents
#   tests/wan_faults_test.sh --long    20 agents in the 12 regions, ten minutes of losses and jitter before the faults
#   tests/wan_faults_test.sh --links   20 agents without losses; only links change
. "$(dirname "$0")/lib.sh"
. tests/wan/bed.sh
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify ip awk
agents=8 stages=2,3,3 skip=1 seconds=0 away=5 loss=0.01 jitter=0.3
case ${1:-} in
--long) agents=20 stages=5,3,3,3,3,3 skip=2 seconds=600 away=20 ;;
--links) agents=20 stages=5,3,3,3,3,3 skip=2 away=20 loss=0 jitter=0 ;;
esac
bed_start --regions deploy/regions.json --agents $agents --loss $loss --jitter $jitter
bed_controller --agents $agents --stages $stages --skip $skip --eval-every 0 --budget 0.5
bed_agents
events=$dir/events

# mark: remembers the present end of the events. since WORD...: prints the later lines that contain all words.
mark() { at=$(wc -l <"$events"); }
since() {
	local lines word
	lines=$(tail -n +$((at + 1)) "$events")
	for word; do lines=$(grep -F -- "$word" <<<"$lines"); done
	[ -z "$lines" ] || echo "$lines"
}
# comes_since SECONDS WORD...: waits for a line with all words after the mark; fails if none comes in time
comes_since() {
	local end=$((SECONDS + $1))
	shift
	until [ -n "$(since "$@")" ]; do
		kill -0 $bed_controller_pid 2>/dev/null || die "the controller ended, waiting for: $*"
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}
# wait_since SECONDS WORD...: like comes_since, but ends the test if no line comes
wait_since() { comes_since "$@" || die "no line in time with: ${*:2}"; }
iteration() { grep '"event":"iteration"' "$events" | tail -n 1 | field n; }
# goes_on [ITERATIONS]: waits for this number of iterations, by default 2, so that at least one whole iteration passes
goes_on() { wait_since 120 "\"event\":\"iteration\",\"n\":$(($(iteration) + ${1:-2})),"; }
stage_of() { grep "\"event\":\"node\",\"node\":$1," "$events" | tail -n 1 | field stage; }
is_live() { grep "\"event\":\"node\",\"node\":$1," "$events" | tail -n 1 | grep -q '"state":"live"'; }
dead_are() { # dead_are WORDS NODE...: checks that exactly these nodes were declared dead since the mark
	local what=$1 dead
	shift
	# A dead node whose stage changes is reported as dead again. This is not another death.
	dead=$(awk -v mark=$at -F '[:,]' '/"event":"node"/ {
			match($0, /"state":"[a-z]*"/)
			state = substr($0, RSTART, RLENGTH)
			if (NR > mark && state ~ /dead/ && was[$4] !~ /dead/) print $4
			was[$4] = state
		}' "$events" | sort -n | uniq | tr '\n' ' ')
	[ "$dead" = "${*:+$* }" ] || die "$what: declared dead: ${dead:-none}"
}
# Prints the paths of the current plan, one in each line.
paths() {
	sed 's/.*"microbatches"//' "$(find "$dir/run/plans" -name '*.json' | sort | tail -n 1)" |
		grep -o '"path": *\[[0-9, ]*\]' | tr -dc '0-9,\n' | tr ',' ' '
}
uses() { # uses FROM TO: succeeds if the current plan uses the link; gradients use it in the other direction
	paths | awk -v a="$1" -v b="$2" '
		{ for (i = 1; i <= NF; i++) { k = i < NF ? i + 1 : 1; if (($i == a && $k == b) || ($i == b && $k == a)) found = 1 } }
		END { exit !found }'
}

# Prints links FROM TO in descending order of their true latency.
farthest_first() {
	bed_ask cluster >"$dir/now.json"
	awk 'FNR == NR { s = substr($0, index($0, "\"latency_s\":[[") + 14); r = split(substr(s, 1, index(s, "]]") - 1), rows, /\],\[/)
			for (i = 1; i <= r; i++) { split(rows[i], f, ","); for (j = 1; j <= r; j++) l[i - 1, j - 1] = f[j] }; next }
		{ print l[$1, $2], $0 }' "$dir/now.json" - | sort -rn | cut -d ' ' -f 2-
}

wait_for "$events" 3 $bed_controller_pid 300
for ((end = SECONDS + seconds; SECONDS < end; )); do
	kill -0 $bed_controller_pid 2>/dev/null || die "the controller ended"
	sleep 1
done
at=0
dead_are "losses and jitter"
[ $seconds = 0 ] || echo "$(iteration) iterations in $seconds s of losses and jitter: $(bed_ask stats | head -n 1)"

# A process dies, so its connections end.
victim=
for n in $(seq $((agents - 1)) -1 0); do [ "$(stage_of "$n")" = 2 ] && victim=$n && break; done
mark
kill -KILL "${bed_agent_pid[victim]}" || die "agent $victim was not there"
wait_since 20 "\"event\":\"node\",\"node\":$victim," '"state":"dead"'
goes_on
dead_are "agent $victim was killed" "$victim"
# If the network has lost the ends of the connections, the controller may notice the silence first.
since '"state":"dead"' | grep -qE '"why":"(hung up|heartbeat lost)' || die "that it was killed was not seen"
echo "killed: $(since '"state":"dead"' | field why)"

# A machine vanishes: no packet comes from it, and no connection ends.
for n in $(seq 0 $((agents - 1))); do [ "$n" != "$victim" ] && [ "$(stage_of "$n")" = 1 ] && far=$n && break; done
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

# The longest link between two places that the current plan uses takes five times as long. Three iterations later no
# plan may use it, if there are twenty nodes and no other link varies. Messages that are on their way still arrive over
# it.
slow=
while read -r from to; do
	[ "${bed_place[from]}" != "${bed_place[to]}" ] && slow=yes && break
done < <(paths | awk '{ for (i = 2; i <= NF; i++) print $(i - 1), $i }' | sort -u | farthest_first)
if [ -n "$slow" ]; then
	mark
	bed_ask link "$from" "$to" latency_times 5
	goes_on 4
	dead_are "the link $from > $to is slow"
	# With few nodes, or if all links vary, no path may be better than this link.
	if ! uses "$from" "$to"; then
		echo "slow: $from > $to is planned around"
	elif [ $agents = 20 ] && [ $loss = 0 ]; then
		die "after three iterations the plan in force uses the link $from > $to, which takes five times as long"
	else
		echo "slow: $from > $to is used all the same"
	fi
	bed_ask link "$from" "$to" latency_times 1
fi

# A link between two busy nodes that the current plan uses is cut in one direction. If all links vary, the next plan may
# leave the link before the cut. Then the test tries another link.
for try in 1 2 3; do
	read -r from to < <(paths | awk '{ print $1, $2; exit }')
	[ -n "$to" ] || die "no path in the newest plan"
	mark
	bed_ask link "$from" "$to" cut
	comes_since 60 '"event":"link"' '"state":"cut"' && break
	uses "$from" "$to" && die "the link $from > $to is cut, and there is no report of it in 60 s"
	[ $try -lt 3 ] || die "three links that no plan used any more"
	bed_ask link "$from" "$to" restore
	goes_on 4
done
goes_on
dead_are "the link $from > $to is cut"
since '"event":"link"' '"state":"cut"' |
	grep -qE "\"from\":($from,\"to\":$to|$to,\"to\":$from)," || die "another link is taken for cut"
! uses "$from" "$to" || die "the plan in force uses the link $from > $to, which is cut"
echo "cut: $(since '"event":"link"' '"state":"cut"' | head -n 1)"
bed_ask link "$from" "$to" restore
wait_since 90 '"event":"link"' '"state":"back"'
goes_on
dead_are "the link $from > $to is there again"

# A place vanishes for a while. Every stage can spare the nodes of this place.
place=
for p in $(printf '%s\n' "${bed_place[@]:0:agents}" | sort | uniq -c | sort -rn | awk '{ print $2 }'); do
	[ "$p" != "${bed_place[bed_nodes]}" ] || continue
	left=$(for n in $(seq 0 $((agents - 1))); do
		[ "${bed_place[n]}" = "$p" ] || ! is_live "$n" || stage_of "$n"
	done | sort -u | wc -l)
	[ "$left" = "$(tr ',' '\n' <<<$stages | wc -l)" ] && place=$p && break
done
if [ -n "$place" ]; then
	gone=()
	for n in $(seq 0 $((agents - 1))); do [ "${bed_place[n]}" = "$place" ] && is_live "$n" && gone+=("$n"); done
	mark
	bed_ask region "$place" away
	for n in "${gone[@]}"; do wait_since 30 "\"event\":\"node\",\"node\":$n," '"state":"dead"'; done
	sleep $away
	goes_on
	dead_are "$place is away" "${gone[@]}"
	bed_ask region "$place" back
	for n in "${gone[@]}"; do wait_since 180 "\"event\":\"node\",\"node\":$n," '"state":"live"'; done
	goes_on
	dead_are "$place was away" "${gone[@]}"
	echo "away: $place, nodes ${gone[*]}"
fi

kill -TERM $bed_controller_pid
wait $bed_controller_pid || die "controller: exit status $?"
echo "$(iteration) iterations; $(bed_ask stats | head -n 1)"
check_verify "$dir/run" 3
