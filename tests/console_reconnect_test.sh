#!/bin/bash
# A console survives its controller. It shows LOST in grey, attaches again by itself, and shows the run again. The
# controller here serves a recorded run, is stopped, and serves it again. The test also moves in the time of the record.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-console
terminal reconnect

"$bin/skippipe" demo --headless --agents 6 --stages 2,2,2 --time-scale 0 --iterations 5 --run-dir "$dir/run" \
	>"$dir/demo.out" 2>"$dir/demo.err" || die "no run was recorded"
controller=$("$bin/skippipe" keygen "$dir/controller.key") || die "no key"
console=$("$bin/skippipe" keygen "$dir/console.key") || die "no key"
"$bin/skippipe" admit "$dir/list" "$console" --role console --name operator || die "cannot admit"
serve() {
	"$bin/skippipe" controller --replay "$dir/run" --listen "ipc://$dir/at" --key "$dir/controller.key" \
		--admitted "$dir/list" >"$dir/serve.out" 2>>"$dir/serve.err" &
	server=$!
	started+=($server)
}

# The console starts before the controller.
tm -f /dev/null new-session -d -x 80 -y 24 \
	"env XDG_CONFIG_HOME=$dir/config LC_ALL=C.UTF-8 $bin/skippipe-console --connect ipc://$dir/at --controller-key $controller --key $dir/console.key; s=\$?; printf '\r\nstatus=%s\r\n' \$s; sleep 100" ||
	skip "tmux cannot start here"
see 10 'CONNECTING'
serve
see 20 ' REPLAY .*nodes [0-9]/6'
tm send-keys '}'
see 10 'REPLAY, stopped .*nodes 6/6'
before=$(screen | sed -n 's/.*it \([0-9]*\)\/.*/\1/p' | head -n 1)
tm send-keys '}' '}'
end=$((SECONDS + 10))
until [ "$(screen | sed -n 's/.*it \([0-9]*\)\/.*/\1/p' | head -n 1)" -gt "$before" ]; do
	[ $SECONDS -lt $end ] || { screen; die "the cursor does not move"; }
	sleep 0.1
done


# A what-if of a past moment of the record.
tm send-keys B Left Enter
see 10 'WHAT IF skip ./3: [0-9.]+s instead of'
tm send-keys '{'
see 5 'REPLAY, stopped'
see 2 'WHAT IF skip ./3: [0-9.]+s instead of' # the what-if stays on the screen when time moves
tm send-keys B
sleep 0.5
screen | grep -q 'WHAT IF' && { screen; die "the what-if stays"; }

for how in TERM KILL; do
	kill -$how $server
	see 10 ' LOST '
	see 5 'trying to reconnect'
	serve
	see 20 ' REPLAY '
	see 20 'nodes [0-9]/6'
done
kill -STOP $server
see 10 ' LOST '
kill -CONT $server
see 20 ' REPLAY '
screen | grep -q 'gaps' && die "a fresh snapshot was counted as a gap"

# After a console was killed, another console can attach.
kill -KILL "$(pgrep -f "skippipe-console --connect ipc://$dir/at" | tail -n 1)"
see 5 'status=137'
kill -0 $server || die "the controller died with its console"
timeout 5 "$bin/skippipe-console" --connect "ipc://$dir/at" --controller-key "$controller" --key "$dir/console.key" \
	--plain >"$dir/plain.out" 2>&1 </dev/null
grep -q 'Z run ' "$dir/plain.out" || { cat "$dir/plain.out"; die "the next console sees nothing"; }
echo "lost, stopped and back: the console attaches again by itself"
