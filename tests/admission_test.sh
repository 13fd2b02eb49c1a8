#!/bin/bash
# Keys change during a run whose agents are started by hand. An agent whose key is expelled leaves within a second and
# cannot return. Another agent with a new key gets the node of the expelled agent (rotation). The journal reports a
# stranger. If the list of admitted keys is missing for a while (three seconds; a minute with --long), the controller
# keeps the list that it read last: no node leaves, and commits continue. Secrets are only in files of mode 0600. The
# run ends at the right iteration.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
sk=$bin/skippipe
missing_s=3
[ "${1:-}" = --long ] && missing_s=60

for who in controller stranger fresh $(seq -f agent%g 0 5); do
	"$sk" keygen "$dir/$who.key" >"$dir/$who.pub" || die "keygen"
done
for i in $(seq 0 5); do
	"$sk" admit "$dir/admitted" "$(cat "$dir/agent$i.pub")" --role agent --name "agent$i" || die "admit"
done
"$sk" controller --run-dir "$dir/run" --key "$dir/controller.key" --admitted "$dir/admitted" --agents 6 \
	--stages 2,2,2 --skip 1 --iterations 1000 --time-scale 0 --eval-every 0 --format jsonl --gather-s 120 \
	>"$dir/events" 2>"$dir/controller.err" &
controller=$!
started+=($controller)
for _ in $(seq 100); do grep -q 'listening at' "$dir/controller.err" && break; sleep 0.1; done
address=$(sed -n 's,.*listening at \(tcp://[^ ]*\).*,\1,p' "$dir/controller.err")
[ -n "$address" ] || die "the controller does not say where it listens"
join() { # join KEY NAME: starts an agent with this key
	"$sk" agent --join "$address" --controller-key "$(cat "$dir/controller.pub")" --key "$dir/$1.key" \
		--listen tcp://127.0.0.1:0 >"$dir/$2.out" 2>"$dir/$2.err" &
	started+=($!)
}
for i in $(seq 0 5); do join "agent$i" "agent$i"; done
join stranger stranger
wait_for "$dir/events" 3 $controller 120
stage_of() { grep '"event":"node"' "$dir/events" | grep "\"node\":$1," | tail -n 1 | field stage; }
has() { grep '"event":"node"' "$dir/events" | grep -c "$1"; }

# ---- the list is missing for a while
committed() { count "$dir/events" commit; }
mv "$dir/admitted" "$dir/admitted.away" || die "mv"
before=$(committed)
sleep $missing_s
for _ in $(seq 600); do [ "$(committed)" -gt $((before + 3)) ] && break; sleep 0.1; done
grep -q 'the list read before stays in force' "$dir/events" "$dir/controller.err" || die "no report of the missing list"
[ "$(committed)" -gt $((before + 3)) ] || die "$(committed) commits, $before before the list was missing"
[ "$(has '"state":"\(dead\|left\)"')" = 0 ] || die "a node left because the list was missing"
mv "$dir/admitted.away" "$dir/admitted" || die "mv"
[ $missing_s -gt 3 ] && echo "the list missing for $missing_s s: $(($(committed) - before)) commits, no node left"

# ---- an agent is expelled by name while it works
iteration=$(grep '"event":"commit"' "$dir/events" | tail -n 1 | field n)
"$sk" expel "$dir/admitted" agent3 || die "expel"
for _ in $(seq 100); do [ "$(has 'expelled')" -ge 1 ] && break; sleep 0.1; done
[ "$(has '"state":"dead","why":"its key was expelled"')" = 1 ] || die "the expelled agent has not left"
grep -q 'refused connections.*not admitted' "$dir/controller.err" || die "no report of the stranger"
wait_for "$dir/events" $((iteration + 5)) $controller 120
grep -q 'not admitted' "$dir/agent3.err" || die "the expelled agent does not report why"
node=$(grep '"why":"its key was expelled"' "$dir/events" | field node)
for i in 0 1 2 4 5; do
	grep -q "node $node: its key was expelled" "$dir/agent$i.err" || die "agent $i would still accept it"
done

# ---- the node of the expelled agent gets a new key
"$sk" admit "$dir/admitted" "$(cat "$dir/fresh.pub")" --role agent --name agent3 || die "admit a new key"
join fresh fresh
for _ in $(seq 300); do
	[ "$(grep '"event":"node"' "$dir/events" | tail -n 1 | field state)" = '"live"' ] && break
	sleep 0.1
done
live=$(grep '"event":"node"' "$dir/events" | sed 's/.*"node":\([0-9]*\),.*"state":"\([a-z]*\)".*/\1 \2/' |
	awk '{ state[$1] = $2 } END { for (i in state) n += state[i] == "live"; print n }')
[ "$live" = 6 ] || die "$live nodes live after the key was changed"
iteration=$(grep '"event":"commit"' "$dir/events" | tail -n 1 | field n)
wait_for "$dir/events" $((iteration + 3)) $controller 120

# ---- the end of the run
kill -TERM $controller
wait $controller || die "controller: exit status $?"
check_verify "$dir/run" 6

# ---- secrets
secret=$(sed -n 's/^secret //p' "$dir/agent0.key")
[ "$(stat -c %a "$dir/agent0.key")" = 600 ] || die "a key file has mode $(stat -c %a "$dir/agent0.key")"
grep -rlF "$secret" "$dir" | grep -v '/agent0.key$' && die "another file contains a secret"
exit 0
