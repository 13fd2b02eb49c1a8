#!/bin/bash
# Three floods of attempts to join: by strangers, with false invitations, and with one used-up invitation. The
# controller refuses strangers and false invitations without a session or an answer. The key of the used-up invitation
# gets some answers; then the controller bars it, and treats it as a stranger's. No attempt is admitted. Afterwards a
# valid token admits an agent. The script prints the processor time of an attempt.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key
hostile=$bin/../tests/hostile_agent sk=$bin/skippipe
[ -x "$hostile" ] || skip "hostile_agent is not built"
export XDG_STATE_HOME=$dir/state XDG_CONFIG_HOME=$dir/config
unset SKIPPIPE_JOIN
seconds=4
list=$dir/state/skippipe/admitted

"$sk" controller --listen tcp://127.0.0.1:0 --run-dir "$dir/run" --agents 2 --stages 1,1 --skip 0 --gather-s 600 \
	--format jsonl >"$dir/events" 2>"$dir/controller.err" &
controller=$!
started+=($controller)
wait_text "$dir/controller.err" 'listening at' $controller 30
address=$(sed -n 's,.*listening at \(tcp://[^ ]*\).*,\1,p' "$dir/controller.err")
token() { "$sk" invite --address "$address" "$@" 2>>"$dir/invite.err" || die "invite $*"; }
agent() { # agent NAME TOKEN: starts an agent, and waits until its key is admitted
	"$sk" agent --join "$2" --key "$dir/$1.key" --name "$1" --listen tcp://127.0.0.1:0 >"$dir/$1.out" 2>"$dir/$1.err" &
	started+=($!)
	wait_text "$list" " agent $1\$" $! 30
}
used=$(token)
agent one "$used"
false=$(XDG_STATE_HOME=$dir/elsewhere "$sk" invite --key "$dir/state/skippipe/controller.key" --address "$address" 2>/dev/null)

spent_us() { cat /proc/$controller/task/*/schedstat | awk '{ n += $1 } END { printf "%d\n", n / 1000 }'; }
# flood KIND TOKEN NAME: sets `answered` to the number of attempts that got an answer, and `sessions` to the number of
# attempts that got a session
flood() {
	local before refused taken_us
	before=$(spent_us)
	"$hostile" "$1" $seconds "$2" >"$dir/flood" || die "no flood"
	taken_us=$(($(spent_us) - before - idle_us))
	read -r _ refused _ answered _ _ _ sessions <"$dir/flood"
	[ "$refused" -gt 100 ] || die "only $refused attempts were refused: $(cat "$dir/flood")"
	echo "$3: $(cat "$dir/flood"); $((taken_us / (refused + answered))) us of the controller for each"
}
before=$(spent_us)
sleep $seconds
idle_us=$(($(spent_us) - before))
list_before=$(cat "$list")
refused_all() { [ "$answered $sessions" = '0 0' ] || die "$1: $answered attempts were answered, $sessions got a session"; }
flood stranger "$false" strangers
refused_all strangers
flood invited "$false" "false invitations"
refused_all "false invitations"
# The controller answers the first requests with the reason. Then it bars the key.
flood invited "$used" "an invitation that is used up"
[ "$answered" -ge 1 ] && [ "$answered" -le 200 ] || die "$answered requests were answered"
wait_text "$dir/controller.err" 'invitation [0-9a-f]* exceeded its quota' $controller 20
flood invited "$used" "the same invitation, whose key is barred"
refused_all "a barred key"
[ "$(cat "$list")" = "$list_before" ] || die "the list has changed"
agent two "$(token)"
exit 0
