#!/bin/bash
# Three floods of attempts to join cost the controller the same processor time for each attempt: by strangers, with false
# invitations, and with an invitation that is used up. The key of the last is barred after some requests, so that it is a
# stranger's from then on. The floods admit nobody. Afterwards a valid token admits an agent.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key
hostile=$bin/../tests/hostile_agent sk=$bin/skippipe
[ -x "$hostile" ] || skip "hostile_agent is not built"
export XDG_STATE_HOME=$dir/state XDG_CONFIG_HOME=$dir/config
unset SKIPPIPE_JOIN
seconds=4
most_percent=150 slack_us=200000 # of the processor time of as many strangers, and what the journal may take besides
list=$dir/state/skippipe/admitted

"$sk" controller --listen tcp://127.0.0.1:0 --run-dir "$dir/run" --agents 2 --stages 1,1 --skip 0 --gather-s 600 \
	--format jsonl >"$dir/events" 2>"$dir/controller.err" &
controller=$!
started+=($controller)
wait_text "$dir/controller.err" 'listening at' $controller 30
address=$(sed -n 's,.*listening at \(tcp://[^ ]*\).*,\1,p' "$dir/controller.err")
token() { "$sk" invite --address "$address" "$@" 2>>"$dir/invite.err" || die "invite $*"; }
agent() { # agent NAME TOKEN
	"$sk" agent --join "$2" --key "$dir/$1.key" --name "$1" --listen tcp://127.0.0.1:0 >"$dir/$1.out" 2>"$dir/$1.err" &
	started+=($!)
	wait_text "$list" " agent $1\$" $! 30
}
used=$(token)
agent one "$used"
false=$(XDG_STATE_HOME=$dir/elsewhere "$sk" invite --key "$dir/state/skippipe/controller.key" --address "$address" 2>/dev/null)

spent_us() { cat /proc/$controller/task/*/schedstat | awk '{ n += $1 } END { printf "%d\n", n / 1000 }'; }
# flood KIND TOKEN NAME: sets taken_us to the controller's processor time, and n to the number of attempts
flood() {
	local before refused
	before=$(spent_us)
	"$hostile" "$1" $seconds "$2" >"$dir/flood" || die "no flood"
	taken_us=$(($(spent_us) - before - idle_us))
	read -r _ refused _ answered _ <"$dir/flood"
	[ "$refused" -gt 100 ] || die "only $refused attempts were refused: $(cat "$dir/flood")"
	n=$((refused + answered))
	echo "$3: $(cat "$dir/flood"); $((taken_us / n)) us of the controller for each"
}
before=$(spent_us)
sleep $seconds
idle_us=$(($(spent_us) - before))
flood stranger "$false" strangers
stranger_us=$((taken_us / n))
list_before=$(cat "$list")
costs_no_more() {
	[ $taken_us -le $((n * stranger_us * most_percent / 100 + slack_us)) ] ||
		die "$((taken_us / n)) us for each, and $stranger_us us for a stranger"
}
flood invited "$false" "false invitations"
costs_no_more
# The first requests are answered, with the reason. Then the key is barred.
flood invited "$used" "an invitation that is used up"
[ "$answered" -ge 1 ] && [ "$answered" -le 200 ] || die "$answered requests were answered"
wait_text "$dir/controller.err" 'invitation [0-9a-f]* exceeded its quota' $controller 20
flood invited "$used" "the same invitation, whose key is barred"
[ "$answered" = 0 ] || die "$answered requests with a barred key were answered"
costs_no_more
[ "$(cat "$list")" = "$list_before" ] || die "the list has changed"
agent two "$(token)"
exit 0
