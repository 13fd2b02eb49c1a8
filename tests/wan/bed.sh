# A wide-area network on this machine (docs/testbed.md), sourced after tests/lib.sh. Each node has a
# network namespace, and the controller and the consoles share one. wan_router connects them.
#
#   bed_places PLACE...           prints a cluster file with a node in each place: 0.5 ms and 100 MB/s within
#                                 a place, 15 ms and 20 MB/s between two
#   bed_start ROUTER-OPTION...    makes the network: --cluster FILE, or --regions FILE --agents N, ...
#   bed_in NODE COMMAND...        runs a command in the namespace of a node: a number, or controller
#   bed_spawn NODE COMMAND...     starts a process $bed_pid, which is ended with the script
#   bed_ask WORD...               sends a command to the router: bed_ask link 3 5 cut; bed_ask help
#   bed_controller [OPTION...]    starts a controller, process $bed_controller_pid, in $dir/run; events
#                                 in $dir/events
#   bed_agent NODE [OPTION...]    starts the agent of a node, process ${bed_agent_pid[NODE]}
#   bed_agents [OPTION...]        starts all agents
#   bed_console [OPTION...]       runs a console to its end
#   bed_stop                      removes the network; the end of the script does it, too
#
# The variables are bed_nodes (the number of nodes without the controller), ${bed_address[NODE]} and
# ${bed_place[NODE]}, with the controller at [bed_nodes]. The control socket is $dir/wan.sock.
bed_tools=${SKIPPIPE_BUILD:-$PWD/build}/tests
bed_tag=skw$$-
bed_nodes=0
bed_router=
bed_address=() bed_place=() bed_agent_pid=()

bed_places() {
	awk -v places="$*" 'BEGIN {
		n = split(places, place)
		printf "{\"format\": \"skippipe.cluster/1\", \"name\": \"places\", \"stages\": [%d], \"activation_bytes\": 98304, \"microbatches_per_data_node\": 6, \"nodes\": [", n
		for (i = 1; i <= n; i++)
			printf "%s{\"id\": %d, \"location\": \"%s\", \"forward_s\": 0.1, \"backward_s\": 0.2, \"loss_s\": 0.01, \"memory\": 4}", (i > 1 ? ", " : ""), i - 1, place[i]
		for (m = 0; m < 2; m++) {
			printf "%s", m ? "]], \"bandwidth_bytes_per_s\": [" : "], \"links\": {\"latency_s\": ["
			for (i = 1; i <= n; i++)
				for (j = 1; j <= n; j++) {
					v = i == j ? 0 : place[i] == place[j] ? (m ? 1e8 : 0.0005) : (m ? 2e7 : 0.015)
					printf "%s%g", (j > 1 ? ", " : i > 1 ? "], [" : "["), v
				}
		}
		print "]]}}"
	}'
}

bed_start() {
	local n address place list
	[ "$(id -u)" = 0 ] || skip "network namespaces need root"
	need ip
	[ -x "$bed_tools/wan_router" ] && [ -x "$bed_tools/wan_tool" ] || skip "wan_router is not built: make wan"
	list=$("$bed_tools/wan_router" --list "$@") || die "wan_router does not take this: $*"
	while read -r n address place; do
		bed_address[n]=$address
		bed_place[n]=$place
	done <<<"$list"
	bed_nodes=$((${#bed_address[@]} - 1))
	undo+=(bed_stop)
	for n in $(seq 0 "$bed_nodes"); do
		ip netns add "$bed_tag$n" 2>"$dir/netns.err" || skip "no right to make a network namespace: $(cat "$dir/netns.err")"
	done
	: >"$dir/wan.out"
	"$bed_tools/wan_router" --with-parent --namespaces "$bed_tag" --control "$dir/wan.sock" "$@" \
		>"$dir/wan.out" 2>"$dir/wan.err" &
	bed_router=$!
	until grep -q ready "$dir/wan.out"; do
		kill -0 $bed_router 2>/dev/null || {
			wait $bed_router
			[ $? != 77 ] || skip "no right to make a TUN device: $(cat "$dir/wan.err")"
			die "wan_router: $(cat "$dir/wan.err")"
		}
		sleep 0.05
	done
}

# Ends the router first, because its devices are removed with it.
bed_stop() {
	local n
	[ -z "$bed_router" ] || { kill "$bed_router" && wait "$bed_router"; } 2>/dev/null
	bed_router=
	for n in "${!bed_address[@]}"; do ip netns del "$bed_tag$n" 2>/dev/null; done
	bed_address=() bed_place=()
}

bed_index() { if [ "$1" = controller ]; then echo "$bed_nodes"; else echo "$1"; fi; }
bed_in() {
	local n
	n=$(bed_index "$1")
	shift
	ip netns exec "$bed_tag$n" "$@"
}
bed_spawn() {
	local n
	n=$(bed_index "$1")
	shift
	ip netns exec "$bed_tag$n" "$@" &
	bed_pid=$!
	started+=($bed_pid)
}
bed_ask() { "$bed_tools/wan_tool" ask "$dir/wan.sock" "$@"; }

# Makes the keys, once, and admits the agents and a console.
bed_keys() {
	local who role
	[ ! -e "$dir/controller.key" ] || return 0
	for who in controller console $(seq -f agent%g 0 $((bed_nodes - 1))); do
		"$bin/skippipe" keygen "$dir/$who.key" >"$dir/$who.pub" || die "keygen"
		role=agent
		[ "$who" != controller ] || continue
		[ "$who" != console ] || role=console
		"$bin/skippipe" admit "$dir/admitted" "$(cat "$dir/$who.pub")" --role $role --name "$who" >/dev/null ||
			die "admit"
	done
}

bed_controller() {
	need skippipe skippipe-controller skippipe-agent skippipe-key
	bed_keys
	bed_spawn controller "$bin/skippipe" controller --run-dir "$dir/run" \
		--listen "tcp://${bed_address[bed_nodes]}:7700" --key "$dir/controller.key" \
		--admitted "$dir/admitted" --format jsonl "$@" >"$dir/events" 2>"$dir/controller.err"
	bed_controller_pid=$bed_pid
}

bed_agent() {
	local n=$1
	shift
	bed_spawn "$n" "$bin/skippipe" agent --join "tcp://${bed_address[bed_nodes]}:7700" \
		--controller-key "$dir/controller.pub" --key "$dir/agent$n.key" --node "$n" \
		--listen "tcp://${bed_address[n]}:7710" "$@" >"$dir/agent$n.out" 2>"$dir/agent$n.err"
	bed_agent_pid[n]=$bed_pid
}

bed_agents() {
	local n
	for n in $(seq 0 $((bed_nodes - 1))); do bed_agent "$n" "$@"; done
}

bed_console() {
	bed_in controller "$bin/skippipe" console --connect "tcp://${bed_address[bed_nodes]}:7700" \
		--controller-key "$(cat "$dir/controller.pub")" --key "$dir/console.key" "$@"
}
