#!/bin/bash
# `skippipe agent` with several devices starts an agent for each device, with its own key, port and node, and ends all
# of them together. The agent's program lists the GPUs. Here a script replaces this program, and reports two GPUs and a
# third one that cannot be used.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-agent

mkdir "$dir/bin" && cp "$bin/skippipe" "$dir/bin/"
cat >"$dir/bin/skippipe-agent" <<EOF
#!/bin/bash
if [ "\$1" = --devices ]; then
	echo "cpu:v3 oneDNN"
	echo "cuda:0 sm_89 L4, 21.0 GiB free"
	echo "device cuda:1 (Tesla T4) has compute capability 7.5: 8.0 (Ampere) or later is needed"
	echo "cuda:2 sm_89 L4, 21.0 GiB free"
	exit
fi
echo "\$*" >>"$dir/started"
trap 'echo ended >>"$dir/started"; exit 3' TERM
while :; do sleep 0.05; done
EOF
chmod +x "$dir/bin/skippipe-agent"

lines() { wc -l 2>/dev/null <"$dir/started" || echo 0; }
until_lines() { for _ in $(seq 200); do [ "$(lines)" -ge "$1" ] && return; sleep 0.05; done; die "$(cat "$dir/started")"; }

"$dir/bin/skippipe" agent --join tcp://10.0.0.1:7700 --key k --listen tcp://10.0.0.7:7701 \
	--advertise=10.0.0.7:7701 --device cuda:all:bf16 --node 4 --log warn &
pid=$!
started+=($pid)
until_lines 2
sort "$dir/started" >"$dir/sorted"
cat >"$dir/expected" <<EOF
--join tcp://10.0.0.1:7700 --key=k.0 --listen=tcp://10.0.0.7:7701 --advertise=10.0.0.7:7701 --node=4 --log warn --device=cuda:0:bf16
--join tcp://10.0.0.1:7700 --key=k.1 --listen=tcp://10.0.0.7:7702 --advertise=10.0.0.7:7702 --node=5 --log warn --device=cuda:2:bf16
EOF
diff "$dir/expected" "$dir/sorted" || die "other agents were started"
kill -TERM $pid
wait $pid
[ $? = 3 ] || die "the agents' exit status is not that of the whole"
[ "$(grep -c ended "$dir/started")" = 2 ] || die "not all have ended"

# A list of devices has commas. If the port is 0, every agent gets a free port; if the address is a socket file, each
# agent gets a file of its own.
: >"$dir/started"
env --default-signal=INT "$dir/bin/skippipe" agent --device=cpu:v3,cpu --listen ipc:///tmp/x --key a &
pid=$!
started+=($pid)
until_lines 2
grep -qx -- "--listen=ipc:///tmp/x.1 --key=a.1 --device=cpu" "$dir/started" || die "$(cat "$dir/started")"
kill -INT $pid
wait $pid

# The first signal does not end an agent that is stopped; a second signal kills it.
: >"$dir/started"
"$dir/bin/skippipe" agent --device=cpu:v3,cpu --listen ipc:///tmp/x --key a &
pid=$!
started+=($pid)
until_lines 2
agent=$(pgrep -P $pid | head -n 1)
kill -STOP "$agent"
kill -TERM $pid
until_lines 3
kill -TERM $pid
for _ in $(seq 200); do kill -0 $pid 2>/dev/null || break; sleep 0.05; done
kill -0 $pid 2>/dev/null && { kill -KILL "$agent"; die "the agents do not end"; }
! kill -0 "$agent" 2>/dev/null || die "an agent is left"

# With one device, skippipe itself becomes the agent and starts no other process.
: >"$dir/started"
"$dir/bin/skippipe" agent --device cuda:2 --listen tcp://10.0.0.7:0 &
started+=($!)
until_lines 1
grep -qx -- "--device cuda:2 --listen tcp://10.0.0.7:0" "$dir/started" || die "$(cat "$dir/started")"

expect 2 'is not a device' "$bin/skippipe" agent --device cpu,, --key x
expect 1 'device|GPU' "$bin/skippipe" agent --device cuda:900,cuda:901 --join tcp://127.0.0.1:9 \
	--controller-key "$(printf '0%.0s' $(seq 64))" --key "$dir/key" --listen tcp://127.0.0.1:0 --orphan-s 1
# Without the CUDA toolkit the program starts and computes on the CPU.
if command -v readelf >/dev/null; then
	! readelf -d "$bin/skippipe-agent" | grep NEEDED | grep -qE 'cuda|cublas' || die "it needs CUDA's libraries to start"
	toolkit=$(readelf -d "$bin/skippipe-agent" | sed -n 's/.*RUNPATH.*\[\([^]:]*\).*/\1/p')
	hidden() { unshare -rm sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' "$dir/bin" "$toolkit" "$@"; }
	if [ -d "$toolkit" ] && hidden true 2>/dev/null; then
		hidden "$bin/skippipe-agent" --devices >"$dir/devices" 2>&1 || die "without the toolkit: $(cat "$dir/devices")"
		grep -q '^cpu:' "$dir/devices" || die "$(cat "$dir/devices")"
	fi
fi
echo "an agent a device"
