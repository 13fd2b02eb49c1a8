#!/bin/bash
# The operator's commands, given by keys, on a live run. Each command is previewed, done and shown, and then undone if
# possible. A what-if changes nothing. A second console cannot give commands while the first console has the lease,
# and a console with a watcher's key never can.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-console
terminal acts
keys() { local k; for k in "$@"; do tm send-keys -t "$pane" "$k"; sleep 0.1; done; }
type() { tm send-keys -t "$pane" -l "$1"; sleep 0.1; tm send-keys -t "$pane" Enter; sleep 0.1; }
number() { screen | sed -n "s/.*$1 *\([0-9]*\).*/\1/p" | head -n 1; }

run=$dir/run
pane=one:0
tm -f /dev/null new-session -d -s one -x 160 -y 48 \
	"env XDG_RUNTIME_DIR= XDG_CONFIG_HOME=$dir/config XDG_CACHE_HOME=$dir/cache LC_ALL=C.UTF-8 $bin/skippipe demo --agents 8 --stages 2,2,2,2 --skip 1/4 --silence-ms 3000 --run-dir $run 2>$dir/demo.err; s=\$?; printf '\r\nstatus=%s\r\n' \$s; sleep 100" ||
	skip "tmux cannot start here"
see 40 'LIVE .*nodes 8/8'
see 40 'it[0-9]+ predicted'
see 20 'now [1-9][0-9]\.[0-9] of [0-9.]+s' # the console shows plan seconds, as for the other times

# Before the operator gives the command for other stages, the console shows a preview of these
# stages.
type ':cut 2,4,4,2'
see 20 'layers 3,3,3,3 -> 2,4,4,2'
see 2 'iteration +[0-9.]+ -> [0-9.]+ s'
see 2 '8 of 8 nodes get other layers'
see 2 'files: [0-9.]+ MB to the controller'
keys Escape

# A change of the skip ratio shows a preview. Then another plan takes effect, and its prediction is compared with the
# measured time.
before=$(number 'plan')
keys s +
see 5 'iteration +[0-9.]+ -> [0-9.]+ s'
keys Enter
see 2 '1Over 2Nodes'
screen | grep -q ARMED && die "Enter on a fresh dialog applied it"
keys s +
see 5 'iteration +[0-9.]+ -> '
keys Tab Enter
see 5 'ARMED'
see 20 'skip 2/4='
[ "$(number plan)" -gt "$before" ] || die "no new plan"
see 20 'skip 1/4 -> 2/4'
after=$(number ' it')
see 30 "it($((after + 1))|$((after + 2))|$((after + 3))) predicted"

# A node is marked failed and returns.
keys :
type 'node 5'
keys F
see 5 'other replica'
keys Tab Enter
see 10 '05!FAIL'
see 20 'nodes 7/8'
keys R
see 5 'Recover n05'
keys Tab Enter
see 40 'nodes 8/8'

# A what-if is planned and drawn beside the run, first at the present time, then at a past time.
keys B Right
see 5 'stages skipped .* 3 of 4'
keys Enter
see 10 'WHAT IF skip 3/4: [0-9.]+s instead of [0-9.]+'
see 2 'what if'
keys '[' '[' '['
see 5 'REPLAY'
keys B
type ':branch 1 6'
see 10 'WHAT IF skip 1/4 without n06: [0-9.]+s instead of'
keys B L
see 5 ' LIVE '
screen | grep -q 'WHAT IF' && die "the what-if stays"
screen | grep -q 'skip 2/4=' || die "a what-if changed the run"

# The oldest command in the journal is copied, and then undone although later commands follow it.
keys 8 /
type COMMAND
keys End y
see 5 'copied to'
grep -q '^[0-9-]*T[0-9:.]*Z COMMAND it.* skip 1/4 -> 2/4' "$dir/cache/skippipe/copied.txt" || die "the entry was not copied"
keys u
see 5 'undo #1: skip 2/4 -> 1/4'
see 5 'iteration +[0-9.]+ -> '
keys Tab Enter
see 20 'skip 1/4='
keys u
see 5 'undone already'
keys Escape Escape 1

# The format of activations is changed, and the change is undone.
keys :
type 'wire fp32'
see 5 'iteration +[0-9.]+ -> '
keys Tab Enter
see 20 'wire q8 -> fp32'
keys u
see 5 'undo #[0-9]+: wire fp32 -> q8'
see 5 'iteration +[0-9.]+ -> '
keys Tab Enter
see 20 'wire fp32 -> q8'

# An injected hang ends when its duration is over.
keys :
type 'inject hang 7 5s'
see 5 'Inject: hang'
keys Tab Enter
see 20 '07!DEAD'
see 60 'nodes 8/8'

# Each fault of links and speed is injected and shown; one key heals all of them.
for fault in slow-node slow-link loss partition; do
	keys :
	type "inject $fault 7 300s"
	see 5 "Inject: $fault"
	[ $fault = partition ] && { tm send-keys -t "$pane" 7; sleep 0.2; keys Tab; }
	keys Tab Enter
	see 10 "fault#[0-9]+ $fault n07"
	keys X
	end=$((SECONDS + 20))
	while screen | grep -q "fault#[0-9]* $fault"; do
		[ $SECONDS -lt $end ] || { screen; die "$fault was not healed"; }
		sleep 0.2
	done
	see 60 'nodes 8/8'
done

# A node that sends wrong numbers is marked failed, and returns when the operator asks for it.
keys :
type 'inject corrupt 7 300s'
see 5 'marked failed at its first wrong number'
keys Tab Enter
see 20 '07!FAIL'
keys X
see 5 'faults? healed'
keys R
see 5 'Recover n07'
keys Tab Enter
see 40 'nodes 8/8'

# Before a kill, the operator must type the node's number.
see 60 'nodes 8/8'
keys :
type 'inject kill 6'
see 5 'type the node'
keys Tab Enter
see 5 'type the node'
keys 6 Tab Tab Enter
see 20 '06!DEAD'
see 20 'nodes 7/8'

# Pause, one step, resume.
keys P
see 20 'PAUSED'
at=$(number ' it')
keys .
sleep 2
see 20 'PAUSED'
[ "$(number ' it')" -gt "$at" ] || die "a step made no iteration"

# :finish shows a preview, and is undone before the learning rate falls. The run is paused, so that the rate does not
# fall too early.
keys :
type 'finish 500'
see 5 'the rate falls from it[0-9]+ to it[0-9]+'
see 5 'the run ends in [0-9.]+ (min|h)'
keys Tab Enter
see 20 'finish 500 \(.*the rate falls'
keys u
see 5 'undo #[0-9]+: finish 500'
keys Tab Enter
see 20 'the rate stays, and the run continues'
keys P
see 20 ' LIVE '

# A second console can watch, but cannot give commands while the first console has the lease.
touch "$dir/other.out"
controller=$(sed -n 's/.*--connect \([^ ]*\) .*/\1/p' <(pgrep -a -f "skippipe-console --connect" | grep "$run" | head -n 1))
key=$(sed -n 's/.*--controller-key \([^ ]*\) .*/\1/p' <(pgrep -a -f "skippipe-console --connect" | grep "$run" | head -n 1))
"$bin/skippipe-console" --connect "$controller" --controller-key "$key" --key "$dir/other.key" --plain \
	>"$dir/other.out" 2>&1 </dev/null &
other=$!
started+=($other)
end=$((SECONDS + 10))
until grep -q 'not admitted' "$dir/other.out"; do
	[ $SECONDS -lt $end ] || { cat "$dir/other.out"; die "the console does not report that it is not admitted"; }
	sleep 0.2
done
public=$(sed -n 's/.*admit LIST \([0-9a-f]*\) .*/\1/p' "$dir/other.out" | head -n 1)
"$bin/skippipe" admit "$run/keys/admitted" "$public" --role console --name second >"$dir/admit.out" 2>&1 || { cat "$dir/admit.out"; die "cannot admit"; }
end=$((SECONDS + 20))
until grep -q 'Z iteration' "$dir/other.out"; do
	[ $SECONDS -lt $end ] || { cat "$dir/other.out"; die "the admitted console sees nothing"; }
	sleep 0.2
done
kill -TERM $other
pane=two:0
tm new-session -d -s two -x 80 -y 24 \
	"env XDG_CONFIG_HOME=$dir/config LC_ALL=C.UTF-8 $bin/skippipe-console --connect $controller --controller-key $key --key $dir/other.key; sleep 100"
see 10 'held by'
keys X
see 5 'refused: .*lease'
keys q
other() { # other NAME OPTIONS: ends the second console and starts it with these options
	pane=$1:0
	tm new-session -d -s "$1" -x 100 -y 30 \
		"env XDG_CONFIG_HOME=$dir/config LC_ALL=C.UTF-8 $bin/skippipe-console --connect $controller --controller-key $key --key $dir/other.key $2; sleep 100"
	see 10 'WATCHING'
	keys X
}
other readonly --readonly
see 5 'only watches'
keys q
"$bin/skippipe" expel "$run/keys/admitted" second && "$bin/skippipe" admit "$run/keys/admitted" "$public" --role watcher --name second >"$dir/admit.out" ||
	die "cannot admit a watcher"
sleep 1
other watcher ""
see 5 'admitted to watch only'
keys B Right Enter
see 10 'WHAT IF .* instead of'
watcher=$(pgrep -f "skippipe-console .*--key $dir/other.key" | tail -n 1)
tm kill-session -t watcher # the console ends with its terminal
for _ in $(seq 50); do kill -0 "$watcher" 2>/dev/null || break; sleep 0.1; done
kill -0 "$watcher" 2>/dev/null && die "a console without a terminal goes on"

pane=one:0
keys q
see 5 'ends the run'
keys Tab Enter
see 30 'status=0'
check_gone "$run"
echo "every act was previewed, done and seen; a second console was kept from acting"
