#!/bin/bash
# A run begins with weights from a folder: a checkpoint of skippipe, then a Hugging Face folder. Six agents have a folder
# each, so the controller sends every stage. The record names the source, verify begins with it, and a source that has
# changed is refused. A checkpoint's steps and moments go on; another corpus needs --new-corpus.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify skippipe-model
sk=$bin/skippipe

head -c 200000 /dev/urandom | base64 >"$dir/text"
tr 'a-z' 'b-za' <"$dir/text" >"$dir/other"
"$sk" keygen "$dir/controller.key" >/dev/null || die keygen
for i in 0 1 2 3 4 5; do
	"$sk" keygen "$dir/agent$i.key" >/dev/null || die keygen
	"$sk" admit "$dir/admitted" "$("$bin/skippipe-key" public "$dir/agent$i.key")" --role agent --name "agent$i" >/dev/null || die admit
done

# run NAME CONTROLLER-OPTIONS...: six agents in folders of their own; the exit status is the controller's
run() {
	local name=$1 key i agents=() status
	shift
	key=$("$bin/skippipe-key" public "$dir/controller.key") || die "no key"
	"$sk" controller --listen "ipc://$dir/c" --key "$dir/controller.key" --admitted "$dir/admitted" \
		--silence-ms 3000 --format jsonl "$@" >>"$dir/$name.events" 2>"$dir/$name.err" &
	controller=$!
	started+=($controller)
	for i in 0 1 2 3 4 5; do
		"$sk" agent --join "ipc://$dir/c" --controller-key "$key" --key "$dir/agent$i.key" \
			--listen "ipc://$dir/a$i" --node $i --run-dir "$dir/$name.agent$i" 2>"$dir/agent$i.err" &
		agents+=($!)
	done
	started+=("${agents[@]}")
	wait $controller
	status=$?
	for i in "${agents[@]}"; do wait "$i"; done
	started=()
	return $status
}
common=(--agents 6 --stages 2,2,2 --skip 1/3 --budget 0.1 --ahead 0 --eval-every 0 --corpus "$dir/text")

"$sk" train --preset tiny --set n_stages=4 --corpus "$dir/text" --iterations 3 --microbatches 2 --out "$dir/start" \
	>/dev/null || die "no checkpoint"
run ours --run-dir "$dir/ours" --from "$dir/start" "${common[@]}" --iterations 4 --checkpoint-every 2 || die "ours"
grep -q '"iteration": 7' "$dir/ours/checkpoints/00000004/manifest.json" || die "the steps did not go on"
for i in 0 1 2 3 4 5; do
	[ "$(ls "$dir/ours.agent$i/checkpoints/00000000" | wc -l)" = 1 ] || die "agent $i did not get its stage"
done
check_verify "$dir/ours" 4 || die "verify"
