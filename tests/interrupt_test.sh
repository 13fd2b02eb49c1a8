#!/bin/bash
# Ctrl-C, SIGTERM and kill -9 of the demo leave no process and no socket, and a run that can be read. Training that is
# interrupted during a matrix product writes its checkpoint.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
export XDG_RUNTIME_DIR=$dir/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"

for signal in INT TERM KILL; do
	run=$dir/run-$signal events=$dir/events-$signal
	# A shell starts background processes with SIGINT ignored; env restores it.
	env --default-signal=INT "$bin/skippipe" demo --headless --format jsonl --time-scale 0 \
		--agents 8 --run-dir "$run" >"$events" 2>"$dir/demo.err" &
	demo=$!
	started=($demo)
	wait_for "$events" 3 $demo 120
	kill -$signal $demo
	for _ in $(seq 200); do kill -0 $demo 2>/dev/null || break; sleep 0.05; done
	kill -0 $demo 2>/dev/null && die "SIG$signal did not end it in 10 s"
	wait $demo 2>/dev/null
	status=$?
	started=()
	# The kernel signals the agents after kill -9, and on a busy machine they take a while to end.
	[ $signal = KILL ] && for _ in $(seq 200); do (check_gone "$run") >/dev/null && break; sleep 0.1; done
	check_gone "$run"
	if [ $signal != KILL ]; then
		[ $status = 0 ] || die "exit status $status after SIG$signal"
		[ -z "$(ls "$XDG_RUNTIME_DIR")" ] || die "sockets are left: $(ls -R "$XDG_RUNTIME_DIR")"
	fi
	check_verify "$run" 1
done

for threads in 1 1 1 1 2 2; do
	"$bin/skippipe-model" train --iterations 1000000 --batches 1 --threads $threads --out "$dir/model" \
		>"$dir/train.out" 2>&1 &
	train=$!
	started=($train)
	for _ in $(seq 400); do grep -q 'iteration 0' "$dir/train.out" && break; sleep 0.05; done
	sleep 0.3
	kill -TERM $train
	wait $train 2>/dev/null
	status=$?
	started=()
	[ $status = 130 ] || die "training: exit status $status after SIGTERM: $(cat "$dir/train.out")"
	[ -s "$dir/model/manifest.json" ] || die "interrupted training wrote no checkpoint"
	rm -r "$dir/model"
done
