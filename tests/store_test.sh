#!/bin/bash
# --checkpoint-to names a command of the operator that stores checkpoints elsewhere. At first the command fails; the
# journal reports this, and training continues. Later the store has every complete checkpoint, with the manifest stored
# after the stages. Export collects a live run's checkpoint from its agents, and an ended run's checkpoint from the
# agents' folders. It also collects both checkpoints from the store. A run whose agents have lost their disks resumes
# from the store.
. "$(dirname "$0")/lib.sh"
. tests/six_agents.sh
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify skippipe-model
sk=$bin/skippipe
six_keys

mkdir "$dir/store"
cat >"$dir/command" <<'END'
#!/bin/sh
# the operator's command: STORE put|get NAME
echo "$2 $3" >>"$1.log"
case $2 in
put)
	[ -e "$1.broken" ] && exit 7
	mkdir -p "$(dirname "$1/$3")" && cat >"$1/$3" ;;
get) cat "$1/$3" ;;
esac
END
chmod +x "$dir/command"
store="$dir/command $dir/store"
common=(--agents 6 --stages 2,2,2 --skip 1/3 --budget 0.1 --ahead 0 --eval-every 0 --corpus "$dir/text"
	--checkpoint-every 20 --checkpoint-to "$store")
head -c 200000 /dev/urandom | base64 >"$dir/text"

touch "$dir/store.broken"
six_begin run --run-dir "$dir/run" "${common[@]}"
wait_for "$dir/run.events" 35 $controller 240
grep -q "is not stored: the store: put 00000020/stage-000.* failed with exit status 7; again in" "$dir/run.err" ||
	die "no report of the failure"
grep -q "$dir/command" "$dir/run.err" "$dir/run/run.db" && die "the command is in the log or the record"
rm "$dir/store.broken"
"$sk" export "$dir/run" --out "$dir/live" >"$dir/export.out" 2>&1 || die "live export: $(cat "$dir/export.out")"
[ -s "$dir/live/model.safetensors" ] && [ -s "$dir/live/tokenizer.json" ] && [ -s "$dir/live/generation_config.json" ] ||
	die "the export is not whole"
kill -TERM $controller
six_end || die "the controller's exit status"
if unshare -m true 2>/dev/null; then # a run that another user may only read
	unshare -m sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && "$0" export "$1" --out "$2"' \
		"$sk" "$dir/run" "$dir/read-only" >"$dir/export.out" 2>&1 || die "export, read-only: $(cat "$dir/export.out")"
	[ -s "$dir/read-only/model.safetensors" ] || die "the export of a read-only run is not whole"
fi
last=$(cat "$dir/store/latest")
grep -q "the checkpoint of it$((10#$last)) is in the store" "$dir/run.err" || die "the last checkpoint was not stored"
[ "$(ls "$dir/store/$last" | wc -l)" = 4 ] || die "not every file is in the store"
tail -n 4 "$dir/store.log" | head -n 1 | grep -q "put $last/manifest.json" || die "the manifest was not stored last"

# The agents have lost their disks, the controller has lost the files that it had collected, and one file of the store
# is damaged.
rm -rf "$dir"/run.agent? "$dir"/run/checkpoints/*/stage-*
cp -r "$dir/run" "$dir/run2"
expect 1 "lacks stage 0, and no controller of the run lives" "$sk" export "$dir/run" --out "$dir/none"
"$sk" export "$dir/run" --checkpoint-from "$store" --out "$dir/stored" >"$dir/export.out" 2>&1 ||
	die "export from the store: $(cat "$dir/export.out")"
rm -rf "$dir"/run/checkpoints/*/stage-*
six_begin run --resume "$dir/run" --iterations $((10#$last + 3)) --checkpoint-to "$store"
six_end || die "resume: $(tail -n 3 "$dir/run.err")"
grep -qE "(goes back from it[0-9]* to|stages are read from) the checkpoint of it$((10#$last))" "$dir/run.err" || die "it did not go back"
check_verify "$dir/run" 6
[ "$(field restored <"$dir/verify.json")" = 3 ] || die "$(field restored <"$dir/verify.json") stages restored"
