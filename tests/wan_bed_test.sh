#!/bin/bash
# The wide-area test bed has the properties that its description gives. The kernels at both ends see its delays,
# bandwidths, losses and cuts in each direction, and its changes. A limit is wide where a busy machine can add time, and
# exact where only a packet faster than the network could exceed it.
. "$(dirname "$0")/lib.sh"
. tests/wan/bed.sh
need skippipe skippipe-plan ip awk

within() { # within WHAT VALUE LEAST MOST: fails if the value is out of this range
	awk -v v="$2" -v l="$3" -v m="$4" 'BEGIN { exit !(v != "" && v >= l && v <= m) }' || die "$1: $2, expected $3 to $4"
	echo "$1: $2 ($3 to $4)"
}
word() { # word NAME <words: prints the word after NAME
	awk -v name="$1" '{ for (i = 1; i < NF; i++) if ($i == name) print $(i + 1) }'
}
ping() { # ping FROM TO COUNT: sets $least_ms, the shortest round trip, and $answered, the number of answers
	local said
	said=$(bed_in "$1" "$bed_tools/wan_tool" ping "${bed_address[$(bed_index "$2")]}" "$3")
	answered=$(word answered <<<"$said") least_ms=$(word least_ms <<<"$said")
}
transfer() { # transfer FROM TO BYTES: sets $mbs, the measured bandwidth
	local to said
	to=$(bed_index "$2")
	: >"$dir/receive.out"
	bed_spawn "$to" "$bed_tools/wan_tool" receive 9000 >"$dir/receive.out" 2>"$dir/receive.err"
	until grep -q listening "$dir/receive.out"; do
		kill -0 $bed_pid 2>/dev/null || die "no receiver"
		sleep 0.05
	done
	said=$(bed_in "$1" timeout 60 "$bed_tools/wan_tool" send "${bed_address[to]}" 9000 "$3") || die "sending from $1 to $2"
	wait $bed_pid || die "receiving at $2"
	[ "$(word bytes <"$dir/receive.out")" = "$3" ] || die "$3 bytes were sent, and the receiver has: $(cat "$dir/receive.out")"
	mbs=$(word mbs <<<"$said")
}
stat() { # stat FROM TO COLUMN: prints this number of the link's statistics
	bed_ask stats "$1" "$2" | awk -v name="$3" 'NR == 2 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR == 3 { print $at }'
}

cat >"$dir/three.json" <<'JSON'
{"format": "skippipe.cluster/1", "name": "three", "stages": [2, 1], "nodes": [
 {"id": 0, "location": "here", "forward_s": 0.01, "backward_s": 0.02, "loss_s": 0.001, "memory": 3},
 {"id": 1, "location": "here", "forward_s": 0.01, "backward_s": 0.02, "loss_s": 0.001, "memory": 3},
 {"id": 2, "location": "far", "forward_s": 0.01, "backward_s": 0.02, "loss_s": 0.001, "memory": 3}],
 "links": {
  "latency_s": [[0, 0.02, 0.12], [0.03, 0, 0.11], [0.1, 0.12, 0]],
  "bandwidth_bytes_per_s": [[0, 10e6, 5e6], [10e6, 0, 5e6], [5e6, 5e6, 0]]},
 "activation_bytes": 98304, "microbatches_per_data_node": 2}
JSON
bed_start --cluster "$dir/three.json"
[ "$bed_nodes" = 3 ] && [ "${bed_place[2]}" = far ] && [ "${bed_place[3]}" = here ] || die "wrong places: ${bed_place[*]}"

# Inside the bed, an agent finds the kernel's usual settings.
[ "$(bed_in 0 cat /proc/sys/net/ipv4/tcp_slow_start_after_idle)" = 1 ] || die "a setting of TCP was changed"

ping 0 1 10
within "0 and 1, there and back" "$least_ms" 50 80
ping 0 2 5
within "0 and 2, there and back" "$least_ms" 220 250
ping controller 2 5
within "the controller and 2, there and back" "$least_ms" 220 250

transfer 0 1 15000000
within "TCP, MB/s over a link of 10" "$mbs" 3 10
bed_ask link 0 1 bandwidth_mbs 2 || die "the bandwidth cannot be changed"
transfer 0 1 3000000
within "of 2" "$mbs" 0.6 2
bed_ask link 0 1 bandwidth_mbs 10
bed_ask node 0 up_mbs 1
transfer 0 1 2000000
within "from a node with a way up of 1" "$mbs" 0.3 1
bed_ask reset

bed_ask link 1 0 latency_ms 130
ping 0 1 5
within "one direction longer by 100" "$least_ms" 150 180
bed_ask reset
ping 0 1 5
within "as it was" "$least_ms" 50 80
bed_ask all jitter 0.5
ping 0 1 40
within "the quickest of 40, each direction half as long at best" "$least_ms" 25 48
bed_ask all jitter 0

bed_ask link 0 1 cut
seen=$(stat 1 0 arrived_packets) cut=$(stat 0 1 cut_off)
ping 1 0 3
[ "$answered" = 0 ] || die "answers come over a cut link"
[ "$(stat 1 0 arrived_packets)" = $((seen + 3)) ] || die "the other direction was cut, too"
[ "$(stat 0 1 cut_off)" = $((cut + 3)) ] || die "$(stat 0 1 cut_off) packets are counted as cut off, expected $((cut + 3))"
bed_ask link 0 1 restore
ping 1 0 3
[ "$answered" = 3 ] || die "a restored link carries nothing"
bed_ask region far away
ping 0 2 2
[ "$answered" = 0 ] || die "a node that is away answers"
bed_ask node 2 back
ping 0 2 2
[ "$answered" = 2 ] || die "a node that is back does not answer"

bed_ask link here here latency_ms 1
bed_ask link controller 1 loss 0.03
transfer controller 1 3000000
within "packets of $(stat controller 1 sent_packets) lost, of 100" \
	"$(awk -v l="$(stat controller 1 lost)" -v s="$(stat controller 1 sent_packets)" 'BEGIN { print 100 * l / s }')" 1 6
[ "$(stat 1 controller lost)" = 0 ] || die "the other direction loses, too"

bed_ask link 0 9 cut 2>"$dir/ask.err" && die "a node that there is not was cut"
grep -q '"9": expected a node from 0 to 2' "$dir/ask.err" || die "the mistake is not named: $(cat "$dir/ask.err")"

# The cluster that the router prints is a valid description.
bed_ask cluster >"$dir/true.json" || die "the router does not print its cluster"
"$bin/skippipe" plan "$dir/true.json" --evaluations 10 >/dev/null 2>"$dir/plan.err" || die "it is no cluster: $(cat "$dir/plan.err")"

bed_stop
! ip netns list | grep -q "$bed_tag" || die "namespaces are left"
