#!/bin/bash
# Machines join a run with tokens of invitations: from the environment, from a file and from the command line. The
# controller admits each machine's own key under the machine's name; the admission survives the controller. An
# invitation that is used up, expired or revoked is refused, and both ends give the reason. A token with a false secret
# is treated as a stranger's. A console joins in the same way. The secret is in no log, no list of processes, and no
# environment of a running agent.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-console
sk=$bin/skippipe
export XDG_STATE_HOME=$dir/state XDG_CONFIG_HOME=$dir/config
unset SKIPPIPE_JOIN
list=$dir/state/skippipe/admitted

start() { # start OPTION...: starts the controller
	"$sk" controller --listen "$address" --format jsonl --gather-s 120 "$@" >>"$dir/events" 2>>"$dir/controller.err" &
	controller=$!
	started+=($!)
}
address=ipc://$dir/c
admitted() { grep -cE "^[0-9a-f]{64} $1 " "$list"; } # admitted ROLE: prints the number of admitted keys with this role
token() { "$sk" invite --address "$address" "$@" 2>>"$dir/invite.err" || die "invite $*"; }
as=() # words in front of the agent's command line, such as unshare
agent() { # agent NAME OPTION...: starts an agent with a key of its own
	"${as[@]}" "$sk" agent --key "$dir/$1.key" --listen tcp://127.0.0.1:0 "${@:2}" >>"$dir/$1.out" 2>>"$dir/$1.err" &
	pid=$!
	started+=($!)
}
run=(--agents 3 --stages 1,1,1 --skip 0 --iterations 100000 --time-scale 0 --eval-every 0)

# ---- three machines join, before and after the controller starts
three=$(token --uses 3)
printf '%s\n' "$three" >"$dir/token"
SKIPPIPE_JOIN=$three SKIPPIPE_NAME=first SKIPPIPE_PLACE=eu-west agent first
first=$pid
start --run-dir "$dir/run" "${run[@]}"
agent second --join "@$dir/token" --name second
second=$pid
long=$(printf 'm%.0s' {1..64}) # as long as a machine's name can be
unshare --uts true 2>/dev/null && as=(unshare --uts sh -c 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"' "$long")
agent third --join "$three"
third=$pid
wait_for "$dir/events" 3 $controller 120
grep -qE '^[0-9a-f]{64} agent first$' "$list" || die "the first agent has not its name"
grep -qE '^[0-9a-f]{64} agent second$' "$list" || die "the second agent has not its name"
[ "${#as[@]}" = 0 ] || grep -qE "^[0-9a-f]{64} agent m{63}\$" "$list" || die "the third agent has not its machine's name"
as=()
[ "$(admitted agent)" = 3 ] || die "$(admitted agent) agents are admitted"
"$sk" invite --list | grep -q ' 3/3 .*used up' || die "the invitation is not used up"

# ---- the secret is nowhere else
for p in $first $second $third; do
	for file in cmdline environ; do
		tr '\0' '\n' <"/proc/$p/$file" | grep -qF "$three" && die "the $file of a process shows the token"
	done
done
grep -rlF "${three#*_}" "$dir" | grep -v "^$dir/token\$" && die "a file contains the token"

# ---- refusals, with the reason at both ends
refused() { # refused WORDS TOKEN [OPTION...]: an agent with this token must be refused with these words
	expect 3 "$1" timeout 30 "$sk" agent --join "$2" --key "$dir/other.key" --listen tcp://127.0.0.1:0 "${@:3}"
	[ -z "${journal:-}" ] || grep -q "refused: $journal" "$dir/controller.err" || die "the journal does not say: $journal"
}
journal='the invitation is used up (3 of 3 uses)' refused 'used up \(3 of 3 uses\)' "$three"
revoked=$(token)
id=$("$sk" invite --list | tail -n 1 | cut -d ' ' -f 1)
"$sk" invite --revoke "$id" || die "revoke"
journal='the invitation is revoked' refused 'is revoked' "$revoked"
expired=$(token)
sed -i '$ s/ 20[0-9-]*T/ 2020-01-01T/' "$list"
journal='the invitation is expired' refused 'is expired' "$expired"
taken=$(token)
journal='the name "first" belongs to another key' refused 'belongs to another key' "$taken" --name first
false=$(XDG_STATE_HOME=$dir/elsewhere "$sk" invite --key "$dir/state/skippipe/controller.key" --address "$address" 2>/dev/null)
refused 'does not know this invitation' "$false"
[ "$(admitted agent)" = 3 ] || die "a refused key was admitted"
expect 2 'token is not complete' "$sk" agent --join "${taken%??}"
SKIPPIPE_JOIN=$address SKIPPIPE_ORPHAN_S=many expect 2 'SKIPPIPE_ORPHAN_S' "$sk" agent
expect 2 'this token is for a watcher' "$sk" agent --join "$(token --role watcher)"

# ---- no address of a token answers: the agent logs the cause of each address once, and ends with all causes
nobody=$("$sk" invite --address tcp://127.0.0.1:9 --address tcp://127.0.0.2:9 2>/dev/null)
expect 1 '127.0.0.1 port 9: .*; 127.0.0.2 port 9: ' timeout 30 "$sk" agent --join "$nobody" --key "$dir/other.key" \
	--listen tcp://127.0.0.1:0 --orphan-s 2
"$sk" agent --join "$nobody" --key "$dir/other.key" --listen tcp://127.0.0.1:0 --orphan-s 2 2>"$dir/nobody.err"
[ "$(grep -c 'no connection to the controller' "$dir/nobody.err")" = 2 ] || { cat "$dir/nobody.err"; die "a cause is repeated"; }
expect 1 'give --run-dir: ' env -u HOME -u XDG_STATE_HOME "$sk" agent --join "$nobody"
expect 1 'give --run-dir: ' env -u HOME -u XDG_STATE_HOME "$sk" agent --join "$nobody" --device cpu,cpu

# ---- a console, and a console that may only watch
for role in console watcher; do
	timeout 60 "$sk" console "$(token --role $role)" --key "$dir/$role.key" --name "$role" --plain \
		>"$dir/$role.out" 2>"$dir/$role.err" &
	started+=($!)
	wait_text "$list" " $role $role\$" $! 60
	wait_text "$dir/$role.out" 'iteration\|it[0-9]' $! 60
done

# ---- skippipe status on another machine: one screen of the run, and an exit status for scripts; the token is used once
look=$(token --role console)
status() { # status EXPECTED WORDS [OPTION...]: ends with this exit status, and prints the words
	local rc=0
	"$sk" status "$look" "${@:3}" >"$dir/status.out" 2>"$dir/status.err" || rc=$?
	[ $rc = "$1" ] && grep -qE -- "$2" "$dir/status.out" "$dir/status.err"
}
until_status() { # like `status`, but waits until the run is in this state
	local end=$((SECONDS + 60))
	until status "$@"; do
		[ $SECONDS -lt $end ] || { cat "$dir/status.out" "$dir/status.err"; die "status TOKEN: expected $1, \"$2\""; }
		sleep 0.2
	done
}
until_status 0 '^skippipe: healthy'
until_status 0 '^nodes  *3 live$'
until_status 0 '"health": "healthy"' --json
[ "$(admitted console)" = 2 ] || die "$(admitted console) consoles are admitted"
kill -KILL $third
wait $third 2>/dev/null
until_status 1 '1 node is dead: n0[0-2]'
long=$(printf 'm%.0s' {1..64}) # as long as a machine's name can be
unshare --uts true 2>/dev/null && as=(unshare --uts sh -c 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"' "$long")
agent third --join "$three"
third=$pid
until_status 0 '^nodes  *3 live$'
expect 3 'this token is for an agent' "$sk" status "$three"
expect 3 'used up' env XDG_STATE_HOME="$dir/elsewhere" "$sk" status "$look"

# ---- a new controller still knows the list of admitted keys, and an agent keeps its key
kill -KILL $controller
wait $controller 2>/dev/null
iteration=$(grep '"event":"iteration"' "$dir/events" | tail -n 1 | field n)
start --resume "$dir/run"
kill -KILL $third
wait $third 2>/dev/null
agent third --join "$three"
wait_for "$dir/events" $((iteration + 5)) $controller 120
[ "$(admitted agent)" = 3 ] || die "the agent was admitted twice"
grep '"event":"node"' "$dir/events" | tail -n 20 | grep -q '"state":"live"' || die "no agent returned"
kill -TERM $controller
wait $controller || die "controller: exit status $?"
until_status 3 'no answer from the controller'

