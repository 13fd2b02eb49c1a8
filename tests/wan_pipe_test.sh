#!/bin/bash
# Bulk data fills a long fast link, and urgent messages do not wait behind it. The link has kernel TCP with default
# settings, 200 Mbit/s and a round trip of 150 ms. One of four tries must succeed, because this machine may be busy.
# Simpler designs are far outside the limits: a connection with fixed buffers of 208 KiB carries 11 Mbit/s there, a
# connection with fixed buffers of 1 MiB carries 56 Mbit/s, and an activation behind 64 MiB of other data waits for
# seconds.
. "$(dirname "$0")/lib.sh"
. tests/wan/bed.sh
need skippipe ip awk
wire=$bed_tools/../bench/wire
[ -x "$wire" ] || skip "bench/wire is not built: make bench"

number() { # number KIND KEY <lines: prints the value in the last line of that kind
	sed -n "s/.*\"what\":\"$1\".*\"$2\":\([0-9.]*\).*/\1/p" | tail -n 1
}
# holds VALUE OPERATOR LIMIT WORDS: succeeds if the comparison is true; otherwise prints the words
holds() {
	echo "$4: $1 (wanted $2 $3)"
	awk -v v="$1" -v l="$3" "BEGIN { exit !(v != \"\" && v $2 l) }"
}

cat >"$dir/two.json" <<'JSON'
{"format": "skippipe.cluster/1", "name": "two", "stages": [1, 1], "nodes": [
 {"id": 0, "location": "here", "forward_s": 1, "backward_s": 1, "loss_s": 1, "memory": 2},
 {"id": 1, "location": "there", "forward_s": 1, "backward_s": 1, "loss_s": 1, "memory": 2}],
 "links": {"latency_s": [[0, 0.075], [0.075, 0]],
  "bandwidth_bytes_per_s": [[0, 25e6], [25e6, 0]]},
 "activation_bytes": 98304, "weights_bytes_per_stage": 1000000, "microbatches_per_data_node": 2}
JSON
bed_start --cluster "$dir/two.json"

# After a pause, an activation (98,304 bytes) must be acknowledged within two round trips and the time for its bytes.
# Bulk data must use most of the link. An activation among bulk data may be late by less than half a round trip.
try() {
	mkdir -p "$dir/try$1"
	bed_spawn 1 "$wire" listen "tcp://${bed_address[1]}:$((7100 + $1))" "$dir/try$1" >"$dir/listen.out" 2>"$dir/listen.err"
	until grep -q listening "$dir/listen.out"; do
		kill -0 $bed_pid 2>/dev/null || die "no listener: $(cat "$dir/listen.err")"
		sleep 0.05
	done
	bed_in 0 timeout 120 "$wire" fill "tcp://${bed_address[1]}:$((7100 + $1))" "$dir/try$1" 6 8 >"$dir/fill" ||
		die "filling"
	cat "$dir/fill"
	local idle among rate
	idle=$(head -n 1 "$dir/fill" | number idle acked_ms)
	rate=$(number bulk Mbit_per_s <"$dir/fill")
	among=$(grep activations "$dir/fill" | number bulk acked_ms)
	holds "$idle" "<" 310 "an activation after a pause, ms" &&
		holds "$rate" ">" 120 "bulk, Mbit/s" &&
		holds "$among" "<" "$(awk -v i="$idle" 'BEGIN { print i + 75 }')" "an activation among bulk, ms"
}
for i in 1 2 3 4; do
	try $i && { echo "the pipe is filled"; exit 0; }
done
die "the pipe is not filled"
