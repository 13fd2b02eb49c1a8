# Functions for scripts that source lib.sh: six agents with separate folders. Call six_keys, then six_begin and six_end.

six_keys() {
	local i
	"$sk" keygen "$dir/controller.key" >/dev/null || die keygen
	for i in 0 1 2 3 4 5; do
		"$sk" keygen "$dir/agent$i.key" >"$dir/public" || die keygen
		"$sk" admit "$dir/admitted" "$("$bin/skippipe-key" public "$dir/agent$i.key")" --role agent --name "agent$i" \
			>/dev/null || die admit
	done
}

# six_begin NAME CONTROLLER-OPTIONS...: starts the controller in $dir and sets $controller. Starts agent i in its run
# folder $dir/NAME.agent$i with the options ${agent_options[i]}
agent_options=()
six_begin() {
	local name=$1 key i
	shift
	key=$("$bin/skippipe-key" public "$dir/controller.key") || die "no key"
	(cd "$dir" && exec "$sk" controller --listen "ipc://$dir/c" --key "$dir/controller.key" --admitted "$dir/admitted" \
		--silence-ms 3000 --format jsonl "$@" >"$dir/$name.events" 2>"$dir/$name.err") &
	controller=$!
	agents=()
	for i in 0 1 2 3 4 5; do
		mkdir -p "$dir/$name.agent$i"
		# shellcheck disable=SC2086
		(cd "$dir/$name.agent$i" && exec "$sk" agent --join "ipc://$dir/c" --controller-key "$key" --key "$dir/agent$i.key" \
			--listen "ipc://$dir/a$i" --node $i --run-dir . ${agent_options[i]:-} 2>"$dir/agent$i.err") &
		agents+=($!)
	done
	started=($controller "${agents[@]}")
}

# Waits for the end of all processes. Returns the exit status of the controller. Agents whose controller fails would wait
# for another controller, so they are ended.
six_end() {
	local i status=0
	wait "$controller" || status=$?
	[ $status = 0 ] || kill -TERM "${agents[@]}" 2>/dev/null
	for i in "${agents[@]}"; do wait "$i"; done
	started=()
	return $status
}
