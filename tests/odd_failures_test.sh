#!/bin/bash
# Failures of machines: a clock that jumps, refused memory, a folder that cannot be written, a record that another
# program locks, a disk that is full for a while (two minutes with --long). Either the programs survive the failure, or
# they report it in one line and the run can be resumed.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify sqlite3
sk=$bin/skippipe jump=$bin/../tests/jump.so
[ -e "$jump" ] || skip "jump.so is not there"
full_s=0
[ "${1:-}" = --long ] && full_s=120

# ---- the time of day jumps by hours at every call: no node is declared dead, and no time limit ends early
LD_PRELOAD=$jump "$sk" demo --headless --format jsonl --agents 6 --stages 2,2,2 --iterations 8 --time-scale 0 \
	--skip 1 --eval-every 4 --eval-batches 1 --run-dir "$dir/jumps" >"$dir/events" 2>"$dir/demo.err" ||
	die "a jumping clock: exit status $?"
first=$(grep -c . <(sed -n 's/^\([0-9T:-]*\)\..*Z .*/\1/p' "$dir/jumps/log/controller.log" | cut -d: -f1 | sort -u))
[ "$first" -gt 1 ] || die "the clock did not jump: the shim does nothing"
grep -q '"state":"dead"' "$dir/events" && die "a node was declared dead by the time of day"
check_verify "$dir/jumps" 2
[ "$(field committed <"$dir/verify.json")" = 8 ] || die "a jumping clock lost commits"

# ---- memory: limits, from the smallest with which the programs start
for who in controller agent; do "$sk" keygen "$dir/$who.key" >"$dir/$who.pub" || die "keygen"; done
least=20000
until (ulimit -v $least; "$bin/skippipe-controller" --help && "$bin/skippipe-agent" --help) >/dev/null 2>&1; do
	least=$((least + 20000))
done
refused=0
for more in 0 4000 30000; do
	for program in controller agent; do
		case $program in
		controller) command=("$bin/skippipe-controller" --run-dir "$dir/m$more" --key "$dir/controller.key"
			--admitted "$dir/nobody" --gather-s 1) ;;
		agent) command=("$bin/skippipe-agent" --join tcp://127.0.0.1:9 --key "$dir/agent.key" --orphan-s 1
			--controller-key "$(cat "$dir/controller.pub")" --listen tcp://127.0.0.1:0) ;;
		esac
		(ulimit -v $((least + more)); timeout 20 "${command[@]}") >"$dir/out" 2>"$dir/memory.err"
		rc=$?
		[ $rc -le 1 ] || [ $rc = 124 ] || die "$program with $((least + more)) kB: exit status $rc"
		grep -qiE 'memory' "$dir/memory.err" && refused=$((refused + 1))
	done
done
[ $refused -gt 0 ] || die "memory was never short: the limit does nothing"

# ---- a limit of file sizes (ulimit -f) acts like a full disk, and causes no crash
(ulimit -f 2000 && exec "$sk" demo --headless --agents 2 --stages 1,1 --skip 0 --time-scale 0 --run-dir "$dir/limited") \
	>"$dir/limited.out" 2>"$dir/limited.err" &
demo=$!
started+=($demo)
wait_text "$dir/limited/log/controller.log" 'the disk is full' $demo 60
kill -INT $demo
wait $demo
grep -q 'ended: signal' "$dir/limited/log/demo.log" && die "a limit of file sizes kills a program"

# ---- the reader of the events pauses, as `less` does: the run continues and ends normally
mkfifo "$dir/paused" && exec 9<>"$dir/paused" && head -c 61440 /dev/zero >&9
"$sk" demo --headless --format jsonl --agents 2 --stages 1,1 --skip 0 --time-scale 0 --eval-every 0 --checkpoint-every 20 \
	--run-dir "$dir/unread" >&9 2>"$dir/unread.err" 9>&- &
demo=$!
started+=($demo)
wait_text "$dir/unread/log/controller.log" 'checkpoint of it40' $demo 100
kill -TERM $demo
wait $demo && die "events are missing, but the exit status is 0"
exec 9>&-
grep -q 'stdout: the reader was too slow' "$dir/unread.err" || die "the missing events are not reported"

# ---- another program locks the record for some seconds: the run waits, says so, and loses no row
locked='"event":"disk","state":"locked"'
"$sk" demo --headless --format jsonl --agents 2 --stages 1,1 --skip 0 --time-scale 0 --eval-every 0 \
	--run-dir "$dir/shared" >"$dir/shared.events" 2>"$dir/shared.err" &
demo=$!
started+=($demo)
wait_for "$dir/shared.events" 3 $demo 100
mkfifo "$dir/edit" && exec 9<>"$dir/edit"
sqlite3 "$dir/shared/run.db" <"$dir/edit" >"$dir/edit.out" 2>&1 9>&- &
editor=$!
started+=($editor)
echo '.timeout 60000
BEGIN IMMEDIATE; SELECT 1;' >&9
wait_text "$dir/shared.events" "$locked" $demo 100
sleep 4
grep -q 'controller ended' "$dir/shared/log/demo.log" && die "a lock on the record ends the controller"
before=$(count "$dir/shared.events" iteration)
echo 'ROLLBACK; .quit' >&9
exec 9>&-
wait_text "$dir/shared/log/controller.log" 'run.db is unlocked again: the run continues' $demo 60
wait_for "$dir/shared.events" $((before + 3)) $demo 60
kill -TERM $demo
wait $demo || die "after a lock the run ends with status $?"
sqlite3 "$dir/shared/run.db" 'select text from note' | grep -q 'another program has locked' || die "a journal line is missing"
check_verify "$dir/shared" 2
[ "$(field committed <"$dir/verify.json")" = "$(count "$dir/shared.events" commit)" ] || die "commits are missing after the lock"
[ "$(sqlite3 "$dir/shared/run.db" 'select count(distinct iteration) from task')" = "$(field committed <"$dir/verify.json")" ] ||
	die "tasks are missing after the lock"

# ---- a folder that cannot be written
if [ "$(id -u)" = 0 ] && mkdir "$dir/fixed" && mount -t tmpfs -o ro,size=1m tmpfs "$dir/fixed" 2>/dev/null; then
	undo+=("umount '$dir/fixed'")
	expect 1 'fixed.*[Rr]ead-only' "$sk" controller --run-dir "$dir/fixed/run" --key "$dir/controller.key" \
		--admitted "$dir/nobody" --gather-s 1
	expect 1 'fixed.*[Rr]ead-only' "$sk" keygen "$dir/fixed/key"
	expect 1 'fixed.*[Rr]ead-only' "$sk" admit "$dir/fixed/list" "$(cat "$dir/agent.pub")" --role agent --name a
else
	echo "no right to mount: a read-only and a full file system are not tried here"
	exit 0
fi

# ---- another program fills the disk: the run waits, says so, and continues when there is room
rm "$dir/events" # the events of the previous run
mkdir "$dir/small" && mount -t tmpfs -o size=40m tmpfs "$dir/small" || die "mount"
undo+=("umount '$dir/small'")
for i in $(seq 0 3); do
	"$sk" keygen "$dir/agent$i.key" >"$dir/agent$i.pub" || die "keygen"
	"$sk" admit "$dir/admitted" "$(cat "$dir/agent$i.pub")" --role agent --name "agent$i" || die "admit"
	"$sk" agent --join "ipc://$dir/door" --controller-key "$(cat "$dir/controller.pub")" --key "$dir/agent$i.key" \
		--listen "ipc://$dir/agent$i" --orphan-s 120 >"$dir/agent$i.out" 2>"$dir/agent$i.err" &
	started+=($!)
done
"$sk" controller --key "$dir/controller.key" --admitted "$dir/admitted" --listen "ipc://$dir/door" --format jsonl \
	--gather-s 120 --run-dir "$dir/small/run" --iterations 100000 --agents 4 --stages 2,2 --skip 0 --microbatches 2 \
	--time-scale 0 --eval-every 0 >"$dir/events" 2>"$dir/full.err" &
controller=$!
started+=($controller)
wait_line() { # wait_line N REGEX: waits until N lines of the events match
	local end=$((SECONDS + 120))
	until [ "$(grep -c "$2" "$dir/events")" -ge "$1" ]; do
		kill -0 $controller 2>/dev/null || die "the run ended and did not wait"
		[ $SECONDS -lt $end ] || die "not $1 times $2"
		sleep 0.05
	done
}
: >>"$dir/events"
fill() { cat /dev/zero >"$dir/small/others" 2>/dev/null; }
full='"event":"disk","state":"full"' room='"event":"disk","state":"room"'
wait_line 3 '"event":"iteration"'
fill
wait_line 1 "$full"
grep -q 'the disk is full: the run waits' "$dir/full.err" || die "no report of the full disk"
sleep $full_s
kill -0 $controller 2>/dev/null || die "the run ended when the disk had been full for $full_s s"
rm "$dir/small/others"
wait_line 1 "$room"
before=$(count "$dir/events" iteration)
wait_line $((before + 3)) '"event":"iteration"'
# Without the reserve of the store, the next commit has to wait.
rm "$dir/small/run/run.reserve" || die "there is no reserve"
fulls=$(grep -c "$full" "$dir/events")
fill
wait_line $((fulls + 1)) "$full"
rm "$dir/small/others"
wait_line 2 "$room"
before=$(count "$dir/events" iteration)
wait_line $((before + 3)) '"event":"iteration"'
kill -TERM $controller
wait $controller || die "after a full disk the run ends with status $?"
awk -v full="$full" -v room="$room" '!waits && index($0, full) { waits = 1; n = 0 } index($0, room) { waits = 0 }
	waits && /"event":"commit"/ && ++n > 1 { exit 1 }' "$dir/events" || die "the run went on while it waited"
[ -e "$dir/small/run/run.reserve" ] && die "what was held back is left"
check_verify "$dir/small/run" 3 # a plan may leave out a node that other programs slow down
[ "$(field committed <"$dir/verify.json")" = "$(count "$dir/events" commit)" ] || die "commits are missing after the full disk"
exit 0
