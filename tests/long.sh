#!/bin/bash
# `make long`: trains the 124m preset on 8 agents on this machine's CPU, two for each stage. In its three iterations
# every microbatch skips a stage. Then verify recomputes the run bit for bit. `make check` leaves this test out, because
# it takes some GiB of memory and minutes of CPU time; the script prints both.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
run=$dir/run events=$dir/events

free_mib=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
[ "$free_mib" -ge 14000 ] || skip "$free_mib MiB are free, 14000 are wanted"
begin=$SECONDS
"$bin/skippipe" demo --headless --format jsonl --model 124m --batch 1 --sequence 256 --agents 8 \
	--stages 2,2,2,2 --skip 1/4 --microbatches 3 --iterations 3 --time-scale 0 --eval-every 0 \
	--run-dir "$run" >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
most=0 peak=0
while kill -0 $demo 2>/dev/null; do
	sum=0
	for pid in $(sed -n 's/.*agent [0-9]* started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" 2>/dev/null); do
		kib=$(awk '/VmRSS/ { print $2 }' "/proc/$pid/status" 2>/dev/null)
		sum=$((sum + ${kib:-0}))
		[ "${kib:-0}" -gt "$most" ] && most=$kib
	done
	[ $sum -gt $peak ] && peak=$sum
	sleep 0.5
done
wait $demo || die "the run failed"
[ "$(count "$events" iteration)" = 3 ] || die "not three iterations"
echo "three iterations in $((SECONDS - begin)) s; resident: $((most / 1024)) MiB the largest agent, $((peak / 1024)) MiB all"
sed -n 's/.* \(the stage takes .*\)$/\1/p' "$run"/log/agent*.log | sort | uniq -c
grep '"event":"iteration"' "$events" | field loss | tr '\n' ' '
begin=$SECONDS
check_verify "$run" 6
echo "verified in $((SECONDS - begin)) s"
