# Functions that the test scripts share: a temporary folder, processes that are ended by their ids, and messages on
# failure. Nothing outside the folder is changed.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
bin=${SKIPPIPE_BUILD:-$PWD/build}/bin
dir=$(mktemp -d "${TMPDIR:-/tmp}/skippipe-test-XXXXXX")
started=()  # processes to end with the script
undo=()     # commands to run at the end, in reverse order

finish() {
	local status=$? i
	trap - EXIT
	for i in "${started[@]}"; do kill -CONT "$i"; kill -TERM "$i"; done 2>/dev/null
	for i in "${started[@]}"; do
		for _ in $(seq 100); do kill -0 "$i" 2>/dev/null || break; sleep 0.1; done
		kill -KILL "$i" 2>/dev/null
	done
	for ((i = ${#undo[@]} - 1; i >= 0; i--)); do eval "${undo[i]}"; done >/dev/null 2>&1
	# Keeps the files for inspection.
	[ -n "${SKIPPIPE_KEEP:-}" ] && mkdir -p "$SKIPPIPE_KEEP" && cp -r "$dir" "$SKIPPIPE_KEEP"
	rm -rf "$dir"
	exit "$status"
}
trap finish EXIT
trap 'exit 143' TERM INT HUP

skip() { echo "$*"; exit 77; }
need() { # need PROGRAM...: skips the test if a program is missing
	local p
	for p in "$@"; do
		[ -x "$bin/$p" ] || command -v "$p" >/dev/null 2>&1 || skip "$p is not there"
	done
}

# Prints the failure and the ends of all logs. The controller's log comes last, because a cut output keeps its end.
die() {
	echo "FAILED: $*"
	local f
	for f in "$dir"/*.err "$dir"/*/log/demo.log; do
		[ -s "$f" ] && [ "$f" != "$dir/controller.err" ] && { echo "--- ${f#"$dir"/}"; tail -n 8 "$f"; }
	done
	for f in "$dir"/*/log/controller.log "$dir/controller.err"; do
		[ -s "$f" ] && { echo "--- ${f#"$dir"/}"; tail -n 40 "$f"; }
	done
	exit 1
}

# expect STATUS WORDS COMMAND...: runs a command that must fail with this exit status. Its message must match WORDS, a
# regular expression, and have at most 40 lines.
expect() {
	local status=$1 words=$2 rc=0
	shift 2
	timeout -k 5 60 "$@" >"$dir/expect.out" 2>"$dir/expect.err" </dev/null || rc=$?
	[ "$rc" = "$status" ] || die "exit status $rc, expected $status: $*"
	grep -qE -- "$words" "$dir/expect.err" || die "no \"$words\" in the message of: $*"
	[ "$(wc -l <"$dir/expect.err")" -le 40 ] || die "too long a message: $*"
}

# terminal NAME: starts a terminal for a console, in a tmux server of its own. tm runs a command of tmux. screen prints
# the pane ($pane, or the current pane). see SECONDS REGEX waits until the screen shows the text.
terminal() {
	need tmux
	socket=skippipe-$1-$$
	undo+=("tmux -L $socket kill-server")
	unset TMUX
}
tm() { tmux -u -L "$socket" "$@"; }
screen() { tm capture-pane -p ${pane:+-t "$pane"} 2>/dev/null; }
see() {
	local end=$((SECONDS + $1))
	until screen | grep -qE -- "$2"; do
		[ $SECONDS -lt $end ] || { screen; die "no \"$2\" on the screen within $1 s${case:+ ($case)}"; }
		sleep 0.1
	done
}

count() { grep -c "\"event\":\"$2\"" "$1"; } # count EVENTS KIND: counts the events of a kind
field() { sed -n "s/.*\"$1\":\\(\"[^\"]*\"\\|[-+0-9.eE]*\\).*/\\1/p"; } # field NAME <objects, one a line

# wait_text FILE TEXT PID SECONDS: waits until the file has the text, while the process runs
wait_text() {
	local end=$((SECONDS + $4))
	until grep -qs "$2" "$1"; do
		kill -0 "$3" 2>/dev/null || die "it ended before: $2"
		[ $SECONDS -lt $end ] || die "$1 has no $2 within $4 s"
		sleep 0.05
	done
}

# wait_for EVENTS N PID SECONDS: waits until the events contain iteration N
wait_for() { wait_text "$1" "\"event\":\"iteration\",\"n\":$2," "$3" "$4"; }

# agent_pid RUN N: prints the process id of agent N, from the supervisor's log
agent_pid() { sed -n "s/.*agent $2 started, process \\([0-9]*\\)\$/\\1/p" "$1/log/demo.log" | tail -n 1; }

# kill_cluster RUN SUPERVISOR: kills a demo with all its processes
kill_cluster() {
	local pid
	kill -KILL "$2"
	wait "$2" 2>/dev/null
	started=()
	for pid in $(sed -n 's/.* started, process \([0-9]*\)$/\1/p' "$1/log/demo.log"); do
		for _ in $(seq 100); do grep -qs "$1" "/proc/$pid/cmdline" || break; sleep 0.1; done
	done
}

# check_plans RUN: checks that every plan of the run follows the rules
check_plans() {
	local plan n=0
	for plan in "$1"/plans/*.json; do
		"$bin/skippipe" simulate "$1/cluster.json" "$plan" >"$dir/simulate.out" 2>&1 ||
			{ cat "$dir/simulate.out"; die "${plan##*/} breaks a rule"; }
		n=$((n + 1))
	done
	[ $n -gt 0 ] || die "no plans were recorded"
	echo "$n plans obey the rules"
}

# check_verify RUN NODES: checks that verify agrees with the run, and that at least NODES nodes counted gradients
check_verify() {
	"$bin/skippipe" verify "$1" --format json >"$dir/verify.json" 2>"$dir/verify.err" ||
		{ cat "$dir/verify.json"; die "verify finds a difference"; }
	local nodes
	nodes=$(field nodes <"$dir/verify.json")
	[ "$nodes" -ge "$2" ] || die "only $nodes nodes counted gradients, expected $2"
	echo "verify: $(cat "$dir/verify.json")"
}

# check_gone RUN: checks that no process of the run is left
check_gone() {
	local pid n=0
	for pid in $(sed -n 's/.* started, process \([0-9]*\)$/\1/p' "$1/log/demo.log"); do
		# Meanwhile the id may belong to another process, which does not count.
		grep -qs skippipe "/proc/$pid/cmdline" && grep -qs "$1" "/proc/$pid/cmdline" &&
			{ echo "process $pid is left"; n=$((n + 1)); }
	done
	[ $n = 0 ] || die "$n processes are left"
}
