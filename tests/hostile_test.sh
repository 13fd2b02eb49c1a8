#!/bin/bash
# An attacker uses an admitted agent (tests/hostile/) in a run with six honest agents; each mode of attack has a run of
# its own. The agent first works, so that it becomes a node of the run, and then attacks. Commits continue, no honest
# agent is excluded or barred, memory and files do not grow with the attacker's messages, and the journal names the
# attacker.
#
#     tests/hostile_test.sh [--long] [MODE...]
#
# --long: each mode attacks for a minute, and the script compares the rate of commits with that before the attack.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key
hostile=$bin/../tests/hostile_agent
[ -x "$hostile" ] || skip "hostile_agent is not built"

modes=(numbers evaluations early announce links forge events logs watch)
honest=6 # number of honest agents; the attacker has the next number
seconds=4 calm=2 long=0 # seconds with and without attack
[ "${1:-}" = --long ] && { long=1 seconds=60 calm=60; shift; }
[ $# -gt 0 ] && modes=("$@")
words='sent\|S[0-9]' # words that follow a node's name in the journal
most_memory_kb=65536 most_file_bytes=1048576 least_percent=90

for who in controller $(seq -f agent%g 0 $honest); do
	"$bin/skippipe" keygen "$dir/$who.key" >"$dir/$who.pub" || die "keygen"
done
for i in $(seq 0 $honest); do
	"$bin/skippipe" admit "$dir/admitted" "$(cat "$dir/agent$i.pub")" --role agent --name "agent$i" || die "admit"
done

"$bin/skippipe" keygen "$dir/watcher.key" >"$dir/watcher.pub" || die "keygen"
"$bin/skippipe" admit "$dir/admitted" "$(cat "$dir/watcher.pub")" --role watcher --name watcher || die "admit"

# Starts the cluster for a mode in the folder $at. Sets $controller, $agents and $attacker to process ids.
begin() { # begin MODE
	local i address format=q6
	at=$dir/$1 agents=()
	# A sum in fp32 is checked at once, an encoded sum only when its slice is complete.
	[ "$1" != numbers ] || format=fp32
	mkdir "$at"
	cp "$dir/admitted" "$at/admitted"
	"$bin/skippipe" controller --run-dir "$at/run" --key "$dir/controller.key" --admitted "$at/admitted" \
		--agents $((honest + 1)) --stages 3,2,2 --skip 1 --microbatches 2 --eval-every 5 --format jsonl --gather-s 120 \
		--ahead 0 --checkpoint-every 0 --sum-wire $format >"$at/events" 2>"$at/controller.err" &
	controller=$!
	started+=($controller)
	for _ in $(seq 300); do grep -q 'listening at' "$at/controller.err" && break; sleep 0.1; done
	address=$(sed -n 's,.*listening at \(tcp://[^ ]*\).*,\1,p' "$at/controller.err")
	[ -n "$address" ] || die "the controller does not say where it listens"
	for i in $(seq 0 $((honest - 1))); do
		"$bin/skippipe" agent --join "$address" --controller-key "$(cat "$dir/controller.pub")" --node "$i" \
			--key "$dir/agent$i.key" --listen tcp://127.0.0.1:0 >"$at/agent$i.out" 2>"$at/agent$i.err" &
		agents+=($!)
	done
	HOSTILE_WATCHER=$dir/watcher.key "$hostile" "$1" "$address" "$(cat "$dir/controller.pub")" "$dir/agent$honest.key" tcp://127.0.0.1:0 $honest \
		>"$at/hostile.log" 2>&1 &
	attacker=$!
	started+=("${agents[@]}" $attacker)
}

stop() {
	local pid
	for pid in $controller "${agents[@]}" $attacker; do kill -TERM "$pid" 2>/dev/null; done
	for pid in $controller "${agents[@]}" $attacker; do wait "$pid" 2>/dev/null; done
	started=()
}

committed() { count "$at/events" commit; }
resident_kb() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status" 2>/dev/null; }
files_bytes() { cat "$at"/*.err "$at/events" "$at"/run/run.db* "$at"/run/plans/* 2>/dev/null | wc -c; }
events_since() { tail -n "+$((seen + 1))" "$at/events"; }

# Prints the memory of each process in kB, the controller first.
resident() { local pid; for pid in $controller "${agents[@]}"; do resident_kb "$pid"; done; }

attack() { # attack MODE: runs the mode's attack, and checks the run
	local mode=$1 before n0 n1 n2 f0 f1 f2 grown i why
	begin "$mode"
	wait_for "$at/events" 6 $controller 120 # waits until the first validation is over
	n0=$(committed) f0=$(files_bytes)
	sleep $calm
	wait_for "$at/events" $((n0 + 5)) $controller 120
	n1=$(committed) f1=$(files_bytes) before=($(resident)) seen=$(wc -l <"$at/events") logged=$(wc -l <"$at/controller.err")
	kill -USR1 $attacker
	sleep $seconds
	n2=$(committed) # during the attack
	wait_for "$at/events" $((n1 + 10)) $controller 120

	# ---- no honest agent was excluded
	why=$(events_since | grep '"event":"node"' | grep -v "\"node\":$honest," | grep -E '"state":"failed"|shut out|gave up|expelled')
	[ -z "$why" ] || die "$mode: an honest node is out: $why"
	for i in $(seq 0 $((honest - 1))); do
		kill -0 "${agents[$i]}" 2>/dev/null || die "$mode: agent $i has ended"
	done
	kill -0 $controller || die "$mode: the controller has ended"

	# ---- memory and files
	i=0
	for grown in $(resident); do
		[ $((grown - before[i])) -le $most_memory_kb ] ||
			die "$mode: process $i grew from ${before[$i]} to $grown kB"
		i=$((i + 1))
	done
	f2=$(files_bytes)
	grown=$((f2 - f1 - (f1 - f0) * ($(committed) - n1) / (n1 - n0)))
	[ $grown -le $most_file_bytes ] || die "$mode: logs and store have $grown bytes more than commits explain"

	# ---- the journal
	local who="n0$honest"
	case $mode in
	watch) who=watcher ;;
	numbers | evaluations | early | announce) who="n0$honest $words" ;;
	esac
	for i in $(seq 600); do
		[ "$mode" = nothing ] || tail -n "+$((logged + 1))" "$at/controller.err" | grep -q "$who" && break
		[ "$i" -lt 600 ] || die "$mode: the journal does not name the attacker"
		sleep 0.1
	done
	if [ "$mode" = logs ]; then
		[ -z "$(LC_ALL=C grep -aE $'[\x01-\x08\x0b-\x1f\x7f]' "$at/events" "$at/controller.err")" ] ||
			die "logs: control characters are in the journal"
		! grep -q '^[0-9TZ:.-]* *error controller: forged' "$at/controller.err" || die "logs: a forged line is in the log"
		tail -n "+$((logged + 1))" "$at/controller.err" | grep -qE "$who( \([^)]*\))? error: .*forged" || die "logs: no line came through"
	fi
	if [ $long = 1 ]; then
		[ $(((n2 - n1) * 100)) -ge $(((n1 - n0) * least_percent)) ] ||
			die "$mode: $((n2 - n1)) commits in $seconds s, $((n1 - n0)) before"
	fi
	echo "$mode: $((n1 - n0)) commits in $calm s before, $((n2 - n1)) in $seconds s under attack"
	stop
}

for mode in "${modes[@]}"; do attack "$mode"; done
