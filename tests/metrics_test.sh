#!/bin/bash
# Watches a run without a console. The metrics contain all nodes. If a node is killed, the HTTP server, the run's record
# and the command for alerts show it. The exit status of skippipe status tells each state of the run, even after the
# controller was killed.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key

run=$dir/run
status() { # status EXPECTED WORDS ARGUMENT...: ends with this exit status, and prints the words
	local rc=0
	"$bin/skippipe" status "${@:3}" >"$dir/status.out" 2>"$dir/status.err" || rc=$?
	[ $rc = "$1" ] && grep -qE -- "$2" "$dir/status.out" "$dir/status.err"
}
expect_status() {
	status "$@" || { cat "$dir/status.out" "$dir/status.err"; die "status ${*:3}: expected $1, \"$2\""; }
}
until_status() { # like `status`, but waits until the run is in this state
	local end=$((SECONDS + 60))
	until status "$@"; do
		[ $SECONDS -lt $end ] || expect_status "$@"
		sleep 0.2
	done
}
scrape() { # scrape PATH: prints the answer to an HTTP request; bash opens the connection
	exec 3<>"/dev/tcp/127.0.0.1/${address##*:}" || die "no connection to $address"
	printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
	cat <&3
	exec 3>&-
}

"$bin/skippipe" demo --headless --format jsonl --agents 6 --stages 2,2,2 --skip 0/3 --time-scale 0 --run-dir "$run" --checkpoint-every 2 \
	--metrics 0 --on-alert 'echo "$SKIPPIPE_ALERT_NODE $SKIPPIPE_ALERT_TEXT" >>"$SKIPPIPE_ALERT_RUN_DIR/heard"' \
	>"$dir/events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$dir/events" 3 $demo 120
address=$(sed -n 's|.*metrics: http://\([^/]*\)/metrics.*|\1|p' "$run/log/controller.log" | tail -n 1)
[ -n "$address" ] || die "the log does not name the address of the metrics"

until_status 0 '^skippipe: healthy' "$address"
expect_status 0 '^nodes  *6 live$' "http://$address/metrics"
expect_status 0 '^skippipe: healthy' "$run"
expect_status 0 '"health": "healthy"' "$run" --json
scrape /metrics >"$dir/metrics"
for i in 0 1 2 3 4 5; do
	grep -q "^skippipe_node_up{node=\"n0$i\"} 1" "$dir/metrics" || die "a scrape without n0$i"
	grep -q "^skippipe_node_resident_memory_bytes{node=\"n0$i\"} [1-9]" "$dir/metrics" || die "n0$i has no memory"
done
scrape /healthz | grep -q '^ok' || die "not healthy"

signal_agents() { # signal_agents STOP|CONT
	local i
	for i in 0 1 2 3 4 5; do kill "-$1" "$(agent_pid "$run" $i)" || die "no agent $i"; done
}

# No node can write a checkpoint while a file has the folder's name. Training continues, but the run is not healthy. The
# agents are stopped meanwhile, because one of them might make the folder again in between.
signal_agents STOP
mv "$run/checkpoints" "$dir/saved"
touch "$run/checkpoints"
signal_agents CONT
until_status 1 'the checkpoint of it[0-9]* failed: n0[0-9] did not save S[0-9]' "$address"
until_status 1 'the checkpoint of it[0-9]* failed: n0[0-9] did not save S[0-9]' "$run"
scrape /metrics | grep -q '^skippipe_checkpoint_failed{node="n0[0-9]"} 1' || die "the metrics show no failed checkpoint"
signal_agents STOP
rm "$run/checkpoints"
mv "$dir/saved" "$run/checkpoints"
signal_agents CONT
until_status 0 '^skippipe: healthy' "$address"
until_status 0 '^checkpoint  of iteration [1-9]' "$run"

kill -KILL "$(agent_pid "$run" 4)" || die "no agent to kill"
until_status 1 '1 node is dead: n04' "$address"
until_status 1 '1 node is dead: n04' "$run"
scrape /metrics | grep -q '^skippipe_node_up{node="n04"} 0' || die "the dead node is up"
wait_text "$run/heard" '^n04 n04 S' $demo 60

# Stops the supervisor, which would otherwise start another controller.
kill -STOP $demo
kill -KILL "$(sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log")" || die "no controller to kill"
until_status 2 'no controller runs' "$run"
kill_cluster "$run" $demo
expect_status 2 'no controller runs' "$run"
expect_status 3 'refused' "$address"
expect_status 3 'no run' "$dir"
expect_status 3 "neither a run's folder, a token nor an address" nowhere
expect_status 4 'expected the folder' "$run" "$run"
expect 1 '--metrics: .*expected PORT or HOST:PORT' "$bin/skippipe" controller --run-dir "$dir/other" \
	--key "$run/keys/controller.key" --admitted "$run/keys/admitted" --metrics here
