# Machines on one switch, sourced after tests/lib.sh: a network namespace each, joined by a bridge in the namespace of
# the controller and the consoles. Nothing delays or emulates a packet.
#
#   machines_begin N               makes N machines, the keys and the list of admitted keys
#   in_machine N COMMAND...        runs a command on a machine: a number, or controller
#   address N                      prints a machine's address
#   machines_controller OPTION...  starts a controller, process $controller_pid, in $dir/run; events in $dir/events
#   machines_agent N OPTION...     starts the agent of a machine, process ${agent_pids[N]}
#   machines_end_agents            ends all agents and waits for them
#   machines_named N COMMAND...    starts a process, $named_pid, on a machine that sees $dir/hosts as /etc/hosts
#   machines_progress N [SECONDS]  waits for N more iterations, by default for at most 60 s
#   machines_is N STATE            succeeds if the newest event of a node has this state
#   machines_wait SECONDS WHAT COMMAND...  waits until a command succeeds; WHAT names the failure
machines_tag=skm$$
agent_pids=()
controller_pid=
controller_at=tcp://10.78.0.1:7700

namespace() { if [ "$1" = controller ]; then echo "$machines_tag"; else echo "$machines_tag-$1"; fi; }
in_machine() {
	local n
	n=$(namespace "$1")
	shift
	ip netns exec "$n" "$@"
}
address() { if [ "$1" = controller ]; then echo 10.78.0.1; else echo "10.78.0.$(($1 + 10))"; fi; }

machines_begin() {
	local n who role
	[ "$(id -u)" = 0 ] || skip "network namespaces need root"
	need skippipe skippipe-controller skippipe-agent skippipe-key ip
	ip netns add "$machines_tag" 2>/dev/null || skip "no right to make a network namespace"
	undo+=("ip netns del $machines_tag")
	ip -n "$machines_tag" link add switch type bridge || skip "no right to make a bridge"
	ip -n "$machines_tag" addr add 10.78.0.1/24 dev switch
	ip -n "$machines_tag" link set switch up
	ip -n "$machines_tag" link set lo up
	for n in $(seq 0 $(($1 - 1))); do
		ip netns add "$machines_tag-$n" || die "namespace $n"
		undo+=("ip netns del $machines_tag-$n")
		ip link add "port$n" netns "$machines_tag" type veth peer name eth0 netns "$machines_tag-$n" ||
			skip "no right to make a veth pair"
		ip -n "$machines_tag" link set "port$n" master switch up
		ip -n "$machines_tag-$n" addr add "$(address "$n")/24" dev eth0
		ip -n "$machines_tag-$n" link set eth0 up
		ip -n "$machines_tag-$n" link set lo up
	done
	for who in controller console $(seq -f agent%g 0 $(($1 - 1))); do
		"$bin/skippipe" keygen "$dir/$who.key" >"$dir/$who.pub" || die "keygen"
		role=agent
		[ "$who" != controller ] || continue
		[ "$who" != console ] || role=console
		"$bin/skippipe" admit "$dir/admitted" "$(cat "$dir/$who.pub")" --role $role --name "$who" >/dev/null ||
			die "admit"
	done
}

machines_controller() {
	: >"$dir/events"
	ip netns exec "$machines_tag" "$bin/skippipe" controller --run-dir "$dir/run" --listen "$controller_at" \
		--key "$dir/controller.key" --admitted "$dir/admitted" --format jsonl "$@" \
		>"$dir/events" 2>"$dir/controller.err" &
	controller_pid=$!
	started+=($controller_pid)
}

machines_agent() {
	local n=$1
	shift
	ip netns exec "$machines_tag-$n" "$bin/skippipe" agent --join "$controller_at" --controller-key "$dir/controller.pub" \
		--key "$dir/agent$n.key" --node "$n" --listen "tcp://$(address "$n"):7710" "$@" \
		>"$dir/agent$n.out" 2>"$dir/agent$n.err" &
	agent_pids[n]=$!
	started+=(${agent_pids[n]})
}

machines_end_agents() {
	local pid
	for pid in "${agent_pids[@]}"; do kill -TERM "$pid" 2>/dev/null; done
	for pid in "${agent_pids[@]}"; do wait "$pid" 2>/dev/null; done
	agent_pids=()
}

machines_named() {
	local n
	n=$(namespace "$1")
	shift
	ip netns exec "$n" unshare -m sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' "$dir/hosts" "$@" &
	named_pid=$!
	started+=($named_pid)
}

machines_progress() { wait_for "$dir/events" $(($(count "$dir/events" iteration) + $1)) "$controller_pid" "${2:-60}"; }

machines_is() {
	[ "$(grep "\"event\":\"node\",\"node\":$1," "$dir/events" | tail -n 1 | field state)" = "\"$2\"" ]
}

machines_wait() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do [ $SECONDS -lt $end ] || die "$what"; sleep 0.1; done
}
