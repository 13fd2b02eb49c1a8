#!/bin/bash
# Executes the commands in docs/machines.md. A block "sh MACHINE" runs on that machine. A block "sh MACHINE &" runs in
# the background, and Ctrl-C ends it before the machine's next block. A machine is a network namespace of the wide-area
# test bed, with a name, a home folder and a hosts file of its own. Two scripts replace ssh and scp.
. "$(dirname "$0")/lib.sh"
. tests/wan/bed.sh
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-console skippipe-verify skippipe-model
need ip nsenter unshare setsid awk
page=docs/machines.md

# Six machines and a laptop, in three places. The hub is in the place of m1.
bed_places Oslo Oslo Lisbon Lisbon Riga Riga Lisbon >"$dir/network.json"
bed_start --cluster "$dir/network.json"
machines=(m1 m2 m3 m4 m5 m6 laptop hub)
mkdir -p "$dir/tools" "$dir/home"
{
	echo 127.0.0.1 localhost
	for i in "${!machines[@]}"; do echo "${bed_address[i]} ${machines[i]}"; done
} >"$dir/hosts"
for i in "${!machines[@]}"; do
	mkdir "$dir/home/${machines[i]}"
	echo "$bed_tag$i" >"$dir/home/${machines[i]}.netns"
done
cat docs/*.md >"$dir/home/hub/text.txt"

# on MACHINE COMMAND...: runs a shell on a machine
cat >"$dir/tools/on" <<END
#!/bin/bash
name=\$1
shift
exec nsenter --net=/var/run/netns/\$(cat "$dir/home/\$name.netns") unshare --mount --uts bash -c '
	mount --bind "$dir/hosts" /etc/hosts && echo "\$0" >/proc/sys/kernel/hostname && cd "$dir/home/\$0" &&
	HOME=\$PWD exec bash -e -c "\$*"' "\$name" "\$@"
END
# ssh [-f] MACHINE WORD...: runs a command there; with -f in the background, in a process group of its own
cat >"$dir/tools/ssh" <<END
#!/bin/bash
if [ "\$1" = -f ]; then
	shift
	setsid "$dir/tools/on" "\$@" </dev/null &
	echo \$! >>"$dir/groups"
else
	exec "$dir/tools/on" "\$@" </dev/null
fi
END
# scp [-r] FROM... TO: copies files; each is MACHINE:PATH or a local path
cat >"$dir/tools/scp" <<END
#!/bin/bash
names=()
for name; do
	case \$name in
	*:*) names+=("$dir/home/\${name%%:*}/"\${name#*:}) ;;
	*) names+=("\$name") ;;
	esac
done
exec cp "\${names[@]}"
END
chmod +x "$dir"/tools/*
export PATH=$dir/tools:$bin:$PATH TMPDIR=$dir
unset LD_PRELOAD

# end_groups SIGNAL: signals all processes of groups that were started here and use the folder
end_groups() {
	local group pid
	for group in $(cat "$dir/groups" 2>/dev/null); do
		for pid in $(pgrep -g "$group"); do
			case $(readlink "/proc/$pid/cwd") in "$dir"/*) kill "-$1" "$pid" ;; esac
		done
	done
}
undo+=('end_groups KILL')

declare -A going # the background process of each machine
n=0
begin() { # begin MACHINE [&] <COMMANDS: runs a block, with & in the background
	local machine=$1 out
	n=$((n + 1))
	out=$dir/$(printf %02d $n).$1
	stop "$machine"
	cat >"$out.sh"
	echo "$1${2:+ &}: $(grep -v '^#' "$out.sh" | head -n 1)"
	env --default-signal=INT setsid on "$machine" "$(cat "$out.sh")" >"$out.out" 2>"$out.err" </dev/null &
	going[$machine]=$!
	echo $! >>"$dir/groups"
	[ -n "${2:-}" ] || over "$machine"
}
# over MACHINE: waits until the commands of the machine have succeeded
over() {
	local pid=${going[$1]} rc=0 i
	unset "going[$1]"
	for ((i = 0; i < 1800; i++)); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
	kill -0 "$pid" 2>/dev/null && die "$1: it does not end"
	wait "$pid" || rc=$?
	[ $rc = 0 ] || die "$1: exit status $rc"
}
# stop MACHINE: waits until the console has shown enough, and presses Ctrl-C
stop() {
	local seen=$dir/seen
	[ -n "${going[$1]:-}" ] || return 0
	for _ in $(seq 1200); do
		kill -0 "${going[$1]}" 2>/dev/null || break
		cat "$dir"/*.laptop.out >"$seen" 2>/dev/null
		grep -qE 'Z iteration 1[2-9]:' "$seen" && break
		sleep 0.1
	done
	kill -0 "${going[$1]}" 2>/dev/null || die "it ended by itself"
	grep -qE 'Z iteration 1[2-9]:' "$seen" || die "the console has not seen iteration 12: $(tail -n 5 "$seen")"
	kill -INT -- "-${going[$1]}"
	over "$1"
}

block=
while IFS= read -r line; do
	case $line in
	'```sh '*) block=${line#'```sh '} commands='' ;;
	'```') [ -z "$block" ] || begin $block <<<"$commands"; block= ;;
	*) [ -z "$block" ] || commands+=$line$'\n' ;;
	esac
done <"$page"

home=$dir/home
said() { cat "$dir"/*."$1".out; } # said MACHINE: prints the output of the machine's blocks
grep -q '"links"' "$home/hub/measured/cluster.json" || die "no links were measured"
[ "$(said hub | grep -c '^iteration_s [0-9.]*$')" = 2 ] || die "no predictions of the measured times"
said laptop | grep -q 'Z iteration 40:' || die "the console did not see the run to its end"
grep -h 'the run ends: stopped by a signal' "$dir"/*.hub.err >"$dir/out" || die "Ctrl-C did not end the run"
grep -q '^restored stages: 3 from checkpoints' <(said hub) || die "the run did not go on from the agents' checkpoints"
grep -q '^the same: 40 iterations' <(said hub) || die "not proved: $(said hub)"

# In a resumed run each machine gets its former node, in whatever order they join.
for m in m1 m2 m3 m4 m5 m6; do
	nodes=$(awk '/tensors at/ { n++ } /welcome: node/ { sub(/.*welcome: node /, ""); node[n] = $1 }
		END { print node[n - 1], node[n] }' "$home/$m/agent.log")
	[ "${nodes% *}" = "${nodes#* }" ] || die "$m was node ${nodes% *} of the run, and then ${nodes#* }"
done

# The checkpoint must be on at least three machines, because three stages are on different machines.
[ "$(ls "$home"/m?/run/checkpoints/00000040/stage-* | wc -l)" -ge 3 ] || die "three stages are not on three machines"
[ "$(ls "$home/hub/run/checkpoints" | wc -l)" = 2 ] || die "not the last two checkpoints are kept"
[ "$(ls "$home/hub/run/checkpoints/00000040" | wc -l)" = 4 ] || die "not a manifest and three stages"
awk '$1 == "nothing" { exit !($4 < 4) } END { if (NR == 0) exit 1 }' <(said hub | grep '^nothing omitted') ||
	die "the weights are not in the model: $(said hub | grep omitted)"
on hub "skippipe eval model --set sequence=64 --set batch=4 --corpus text.txt" >"$dir/exported" 2>"$dir/exported.err" ||
	die "the exported model is not read"
[ "$(cat "$dir/exported")" = "$(said hub | grep '^nothing omitted')" ] || die "the exported model differs: $(cat "$dir/exported")"
continued() { said "$1" | sed -n '/^The controller /,/^model\/config.json/p' | grep -v '^model/'; }
[ -n "$(continued hub)" ] && [ "$(continued hub)" = "$(continued laptop)" ] || die "laptop's copy continues the text differently"
echo "$n blocks of $page; $(said hub | grep '^nothing omitted')"
