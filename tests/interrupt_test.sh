#!/bin/bash
# Ctrl-C, SIGTERM and kill -9 end the demo. They leave no process and no socket, and a run that can be read. If training
# is interrupted during a matrix product, it writes its checkpoint.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
export XDG_RUNTIME_DIR=$dir/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"

for signal in INT TERM KILL; do
	run=$dir/run-$signal events=$dir/events-$signal
	# A shell starts background processes with SIGINT ignored; env makes it effective again.
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
	# After kill -9 the kernel signals the agents. On a busy machine they need some time to end.
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

# begin_model NAME ARGUMENTS...: trains or evaluates in the background, and waits until the first result is printed
begin_model() {
	env --default-signal=INT,PIPE "$bin/skippipe-model" "${@:2}" >"$dir/$1.out" 2>"$dir/$1.err" </dev/null &
	model=$!
	started=($model)
	for _ in $(seq 1200); do
		[ -s "$dir/$1.out" ] && return
		kill -0 $model 2>/dev/null || break
		sleep 0.05
	done
	die "$1: no result within 60 s"
}
end_model() { # end_model NAME STATUS: waits for the end, and checks the exit status
	local status=0
	wait $model 2>/dev/null || status=$?
	started=()
	[ $status = "$2" ] || die "$1: exit status $status, expected $2"
}
endless=(train --iterations 1000000 --batches 1)

# `timeout` and terminals signal a process and then its group, so the process gets the signal twice. The second signal
# must not lose the checkpoint. The test sends it only after the first signal has arrived, because the kernel merges
# equal pending signals.
pending() { # pending PID: succeeds while a signal is pending
	local key value=
	while read -r key value; do [ "$key" = ShdPnd: ] && break; done <"/proc/$1/status"
	[ -n "${value//0/}" ]
}
begin_model twice "${endless[@]}" --microbatches 100 --out "$dir/twice"
kill -TERM $model
while pending $model; do :; done 2>/dev/null
kill -TERM $model 2>/dev/null || : # the process may have ended already
end_model twice 130
[ -s "$dir/twice/manifest.json" ] || die "a repeated signal lost the checkpoint"

# If an iteration takes too long after the first signal, a later signal ends it. The first signal must come during an
# iteration. If it comes earlier, the training ends normally, and the test is repeated.
for _ in 1 2 3 4 5; do
	begin_model late "${endless[@]}" --microbatches 1000000 --out "$dir/late"
	sleep 0.3
	for _ in $(seq 600); do
		kill -TERM $model 2>/dev/null || break
		sleep 0.1
	done
	kill -0 $model 2>/dev/null && die "signals do not end a long iteration"
	status=0
	wait $model 2>/dev/null || status=$?
	started=()
	[ $status = 143 ] && break
	rm -r "$dir/late"
done
[ $status = 143 ] || die "signals to a long iteration: exit status $status"

# If the reader of the output ends, as in `train | head -n 1`, training writes its checkpoint and ends.
{
	timeout -k 5 120 env --default-signal=PIPE "$bin/skippipe-model" "${endless[@]}" --microbatches 1 --format jsonl \
		--out "$dir/piped" 2>"$dir/piped.err" </dev/null
	echo $? >"$dir/piped.status"
} | head -n 1 >"$dir/piped.out"
[ "$(cat "$dir/piped.status")" = 1 ] || die "train | head: exit status $(cat "$dir/piped.status"): $(cat "$dir/piped.err")"
grep -q 'stdout: Broken pipe' "$dir/piped.err" || die "train | head: $(cat "$dir/piped.err")"
[ -s "$dir/piped/manifest.json" ] || die "train | head wrote no checkpoint"

# A signal ends an evaluation at once, in the middle of a result.
"$bin/skippipe-model" eval "$dir/piped" --batches 1 >"$dir/eval.out" || die "the checkpoint cannot be evaluated"
env --default-signal=INT "$bin/skippipe-model" eval "$dir/piped" --batches 1000000000 >"$dir/eval.out" 2>"$dir/eval.err" \
	</dev/null &
model=$!
started=($model)
for _ in $(seq 1200); do # waits until the program has a handler for SIGINT (bit 1 of SigCgt)
	mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/$model/status 2>/dev/null)
	[ -n "$mask" ] && [ $((0x$mask & 2)) != 0 ] && break
	sleep 0.05
done
kill -INT $model
for _ in $(seq 1200); do kill -0 $model 2>/dev/null || break; sleep 0.05; done
kill -0 $model 2>/dev/null && die "SIGINT does not end an evaluation"
end_model eval 130
[ ! -s "$dir/eval.out" ] || die "an interrupted evaluation printed a result"

# Two processes may not write to one folder.
begin_model first "${endless[@]}" --out "$dir/shared"
expect 1 "$dir/shared: another process is writing a model there" "$bin/skippipe-model" train --iterations 1 --microbatches 1 \
	--batches 1 --out "$dir/shared" --force
kill -TERM $model
end_model first 130
"$bin/skippipe-model" eval "$dir/shared" --batches 1 >"$dir/eval.out" || die "the checkpoint cannot be evaluated"

# If a token shard is shortened while it is read, training ends with a message and does not crash.
yes 'plain text' | head -c 200000 >"$dir/text"
"$bin/skippipe-model" tokenize --corpus "$dir/text" --out "$dir/text.bin" >"$dir/tokenize.out" || die "tokenize"
begin_model cut "${endless[@]}" --corpus "$dir/text.bin" --microbatches 1
: >"$dir/text.bin"
end_model cut 1
grep -q 'a file was cut short while it was read' "$dir/cut.err" || die "a shard that was cut: $(cat "$dir/cut.err")"
