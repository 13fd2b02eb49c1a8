#!/bin/bash
# What machines do: a clock that jumps, memory that is refused, a folder that cannot be written, a disk that
# is full and then is not. Each is survived, or said in one line and the run can be gone on with.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
sk=$bin/skippipe jump=$bin/../tests/jump.so
[ -e "$jump" ] || skip "jump.so is not there"

# ---- the time of day jumps by hours at every look: nobody is declared dead, nothing ends early
LD_PRELOAD=$jump "$sk" demo --headless --format jsonl --agents 6 --stages 2,2,2 --iterations 8 --time-scale 0 \
	--skip 1 --eval-every 4 --eval-batches 1 --run-dir "$dir/jumps" >"$dir/events" 2>"$dir/demo.err" ||
	die "a jumping clock: exit status $?"
first=$(grep -c . <(sed -n 's/^\([0-9:]*\)\..*/\1/p' "$dir/jumps/log/controller.log" | cut -d: -f1 | sort -u))
[ "$first" -gt 1 ] || die "the clock did not jump: the shim does nothing"
grep -q '"state":"dead"' "$dir/events" && die "a node was declared dead by the time of day"
check_verify "$dir/jumps" 2
[ "$(field committed <"$dir/verify.json")" = 8 ] || die "a jumping clock lost commits"

# ---- memory: from the least with which programs start at all
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

# ---- a full disk in mid-run; room is made, the controller is started again, and the agents are still there
mkdir "$dir/small" && mount -t tmpfs -o size=600k tmpfs "$dir/small" || die "mount"
undo+=("umount '$dir/small'")
for i in $(seq 0 3); do
	"$sk" keygen "$dir/agent$i.key" >"$dir/agent$i.pub" || die "keygen"
	"$sk" admit "$dir/admitted" "$(cat "$dir/agent$i.pub")" --role agent --name "agent$i" || die "admit"
done
controller() { # controller ARGS...
	"$sk" controller --key "$dir/controller.key" --admitted "$dir/admitted" --listen "ipc://$dir/door" \
		--format jsonl --gather-s 120 "$@"
}
for i in $(seq 0 3); do
	"$sk" agent --join "ipc://$dir/door" --controller-key "$(cat "$dir/controller.pub")" --key "$dir/agent$i.key" \
		--listen "ipc://$dir/agent$i" --orphan-s 120 >"$dir/agent$i.out" 2>"$dir/agent$i.err" &
	started+=($!)
done
rc=0
controller --run-dir "$dir/small/run" --iterations 2000 --agents 4 --stages 2,2 --skip 0 --microbatches 2 \
	--time-scale 0 --eval-every 0 >"$dir/events" 2>"$dir/full.err" || rc=$?
[ $rc = 1 ] || die "a full disk: exit status $rc"
grep -qE 'small/run.*([Nn]o space)' "$dir/full.err" || die "a full disk is not said"
told=$(count "$dir/events" commit)
[ "$told" -gt 0 ] || die "nothing was committed before the disk was full"
mount -o remount,size=64m "$dir/small" || die "remount"
controller --resume "$dir/small/run" --iterations $((told + 5)) >"$dir/events" 2>"$dir/room.err" ||
	die "the run is not gone on with: exit status $?"
check_verify "$dir/small/run" 4
[ "$(field committed <"$dir/verify.json")" = $((told + 5)) ] || die "commits are missing after the full disk"
exit 0
