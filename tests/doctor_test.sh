#!/bin/bash
# skippipe doctor finds problems of real machines, and no problem after its remedy was applied: few open files, a small
# file system, a limit of memory, small TCP buffers, another corpus, a missing device. Between machines it finds a
# closed port in a measured cluster, and a missing controller.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-doctor skippipe-controller skippipe-agent skippipe-key ip iptables python3
sk=$bin/skippipe
unset PUBLIC_IPADDR RUNPOD_PUBLIC_IP

# examine CHECK COMMAND...: prints the findings of a check, one a line: LEVEL FOUND | REMEDY
examine() {
	local check=$1
	shift
	"$@" --json >"$dir/json" 2>"$dir/doctor.err"
	[ -s "$dir/json" ] || return 0
	python3 -c 'import json, sys
for f in json.load(open(sys.argv[1]))["findings"]:
    if f["check"] == sys.argv[2]:
        print(f["level"], f["found"], "|", f["remedy"])' "$dir/json" "$check"
}
has() { # has WORDS CHECK COMMAND...: fails unless the findings of the check contain the words
	local words=$1
	shift
	examine "$@" >"$dir/found"
	grep -qE "$words" "$dir/found" || { cat "$dir/json" "$dir/found"; die "no \"$words\" from: $*"; }
}
hasnt() {
	local words=$1
	shift
	examine "$@" >"$dir/found"
	[ -s "$dir/json" ] && ! grep -qE "$words" "$dir/found" || { cat "$dir/found"; die "\"$words\" from: $*"; }
}
limited() { # limited ULIMIT-OPTIONS COMMAND...: runs a command with a limit
	local limit=$1
	shift
	(ulimit $limit && exec "$@")
}

# The JSON output for scripts, and the exit statuses.
"$sk" doctor --run-dir "$dir" --json >"$dir/json" 2>"$dir/doctor.err"
status=$?
want=$(python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["format"] == "skippipe.doctor/1" and len(d["findings"]) > 8
for f in d["findings"]:
    assert set(f) == {"check", "level", "found", "remedy"} and f["level"] in ("ok", "warning", "error"), f
    assert (f["level"] == "ok") == (f["remedy"] == "") and f["found"], f
print(2 if d["errors"] else 1 if d["warnings"] else 0)' "$dir/json") || { cat "$dir/json"; die "not the form that scripts read"; }
[ $status = "$want" ] || die "exit status $status, expected $want"
"$sk" doctor --run-dir "$dir" >"$dir/text" || true
tail -n 1 "$dir/text" | grep -qE '^[0-9]+ errors?, [0-9]+ warnings?$' || die "the table has no end"
expect 4 'unknown|--colour' "$sk" doctor --colour
expect 4 'corpus' "$sk" doctor --corpus-hash 1234
expect 3 'no run|No such file' "$sk" doctor "$dir/nowhere"

# Limits of the process.
if [ "$(ulimit -H -n)" = unlimited ] || [ "$(ulimit -H -n)" -ge 8192 ]; then
	has '^error .*64 files.*ulimit -n 8192' files limited '-n 64' "$sk" doctor
	hasnt '^error|^warning' files limited '-n 8192' "$sk" doctor
fi
has '^error .*address space.*ulimit -v' limits limited '-v 4000000' "$sk" doctor
has '^error .*processor time.*ulimit -t' limits limited '-t 600' "$sk" doctor
hasnt '^error|^warning' limits "$sk" doctor
[ "$(limited '-n 64' "$sk" doctor >/dev/null; echo $?)" = 2 ] || die "an error does not give exit status 2"

# The corpus and the device.
yes 'the same words again and again' | head -c 50000 >"$dir/text.txt"
hash=$(examine corpus "$sk" doctor --corpus "$dir/text.txt" | sed -n 's/^ok hash \([0-9a-f]*\).*/\1/p')
[ -n "$hash" ] || die "the corpus has no hash"
hasnt '^error' corpus "$sk" doctor --corpus "$dir/text.txt" --corpus-hash "$hash"
echo more >>"$dir/text.txt"
has "^error .*$hash was expected.*copy the corpus" corpus "$sk" doctor --corpus "$dir/text.txt" --corpus-hash "$hash"
has '^ok cpu' device "$sk" doctor
[ "$(examine device "$sk" doctor --device cpu,cpu:plain | grep -c '^ok cpu\|^warning .*AVX2')" = 2 ] || die "not each device of a list is tried"
expect 4 'device "disc"' "$sk" doctor --device cpu,disc
"$bin/skippipe-agent" --devices | grep -q '^cuda:' || has '^error .*cuda' device "$sk" doctor --device cuda

[ "$(id -u)" = 0 ] || { echo "without root: no file systems and namespaces"; exit 0; }

# A small file system, and one that cannot be written.
mkdir "$dir/small"
if mount -t tmpfs -o size=4m doctor "$dir/small" 2>/dev/null; then
	undo+=("umount $dir/small")
	has '^error 4 MiB are free' disk "$sk" doctor --run-dir "$dir/small/run"
	has '^warning .*tmpfs' disk "$sk" doctor --run-dir "$dir/small/run"
	mount -o remount,ro "$dir/small"
	has '^error .*Read-only' disk "$sk" doctor --run-dir "$dir/small/run"
	mount -o remount,rw,size=8g "$dir/small"
	hasnt '^error' disk "$sk" doctor --run-dir "$dir/small/run"
	umount "$dir/small"
fi
hasnt '^error' disk "$sk" doctor --run-dir "$dir/small/run"

# A control group with little memory, of either version.
in_group() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"; }
for group in /sys/fs/cgroup/doctor-$$ /sys/fs/cgroup/memory/doctor-$$; do
	mkdir "$group" 2>/dev/null || continue
	undo+=("rmdir $group")
	for limit in memory.max memory.limit_in_bytes; do
		{ [ -e "$group/$limit" ] && echo 200M >"$group/$limit"; } 2>/dev/null || continue
		has '^error .*memory are free within the limit.*container' memory in_group "$sk" doctor
		echo 100G >"$group/$limit"
		hasnt '^error' memory in_group "$sk" doctor
		echo "a control group was limited by $limit"
	done
done

# The kernel's network settings, in a network namespace of their own.
tag=doctor$$
net() { ip netns exec "$tag-$1" "${@:2}"; }
make_net() {
	ip netns add "$tag-$1" 2>/dev/null || skip "no right to make a network namespace"
	undo+=("ip netns del $tag-$1")
	ip -n "$tag-$1" link set lo up
}
make_net alone
set_sysctl() { net alone sh -c "echo $2 >/proc/sys/net/ipv4/$1" || skip "no right to set $1"; }
set_sysctl tcp_rmem '4096 87380 262144'
has '^warning .*tcp_rmem allows.*sysctl -w net.ipv4.tcp_rmem="4096 87380 6250000"' kernel net alone "$sk" doctor
hasnt 'tcp_rmem' kernel net alone "$sk" doctor --mbit 10 --rtt-ms 10
set_sysctl tcp_rmem '4096 87380 6250000'
hasnt 'tcp_rmem' kernel net alone "$sk" doctor
set_sysctl tcp_slow_start_after_idle 1
has '^warning .*sysctl -w net.ipv4.tcp_slow_start_after_idle=0' kernel net alone "$sk" doctor
set_sysctl tcp_slow_start_after_idle 0
hasnt slow_start kernel net alone "$sk" doctor
has '^error no interface' address net alone "$sk" doctor
VAST_TCP_PORT_7701=40123 PUBLIC_IPADDR=203.0.113.2 has '^ok .*7701 to tcp://203.0.113.2:40123' address net alone "$sk" doctor

# A fleet: a controller and four agents, one of them behind a firewall.
for n in hub one two three; do make_net $n; done
ip -n "$tag-hub" link add lan type bridge
ip -n "$tag-hub" link set lan up
ip -n "$tag-hub" addr add 203.0.113.1/24 dev lan
i=1
for n in one two three; do
	i=$((i + 1))
	ip link add "v$i" netns "$tag-hub" type veth peer name "e$i" netns "$tag-$n" || skip "no right to make a veth pair"
	ip -n "$tag-hub" link set "v$i" master lan up
	ip -n "$tag-$n" addr add "203.0.113.$i/24" dev "e$i"
	ip -n "$tag-$n" link set "e$i" up
done
net three iptables -A INPUT -p tcp --dport 7701 -j REJECT --reject-with tcp-reset || skip "no right to use iptables"
export XDG_STATE_HOME=$dir/state
token=$(net hub "$sk" invite --uses 9 2>"$dir/invite.err") || die "invite"
fleet() { # fleet RUN CONTROLLER-OPTION...: starts a controller and its agents
	ip netns exec "$tag-hub" "$sk" controller --run-dir "$dir/$1" --listen tcp://0.0.0.0:7700 --gather-s 60 --corpus "$dir/text.txt" "${@:2}" \
		>"$dir/$1.out" 2>"$dir/controller.err" &
	controller=$!
	started+=($controller)
	for n in one two three; do
		SKIPPIPE_JOIN=$token ip netns exec "$tag-$n" "$sk" agent --name $n --place eu-$n --key "$dir/$n.key" >"$dir/$n.out" 2>"$dir/$n.err" &
		started+=($!)
	done
}
fleet closed --measure-only --agents 3 --stages 2,1
for _ in $(seq 900); do kill -0 $controller 2>/dev/null || break; sleep 0.1; done
wait $controller || die "controller: exit status $?"
has '^error n0[0-2] \(three, eu-three\).* cannot be reached by any other node.*203\.0\.113\.4.*7701.*on the side of n0[0-2] \(three' \
	reachability "$sk" doctor "$dir/closed"
[ "$(wc -l <"$dir/found")" = 1 ] || { cat "$dir/found"; die "doctor names more pairs than the firewalled one"; }
has '^ok longest round trip' links "$sk" doctor "$dir/closed"
[ "$("$sk" doctor "$dir/closed" >/dev/null; echo $?)" = 2 ] || die "a closed port does not give exit status 2"

# The remedy is applied while the run continues.
net three iptables -F
wait
fleet open --agents 3 --stages 2,1 --model tiny --iterations 0
until_has() { # until_has WORDS CHECK: waits until doctor reports this about the run
	for _ in $(seq 600); do examine "$2" "$sk" doctor "$dir/open" | grep -qE "$1" && return; sleep 0.1; done
	die "no \"$1\" in $(examine "$2" "$sk" doctor "$dir/open")"
}
until_has '^ok 3 take part' nodes
hasnt '^error|^warning' reachability "$sk" doctor "$dir/open"
has '^ok' reachability "$sk" doctor "$dir/open"
has 'a controller runs, corpus [0-9a-f]{16}' run "$sk" doctor "$dir/open"

# Another machine examines the run with a token. The token can be used once only, but the machine's key stays admitted.
watch=$(net hub "$sk" invite --role watcher --uses 1 2>"$dir/invite.err") || die "invite a watcher"
for i in 1 2; do
	has '^ok 3 take part' nodes net one "$sk" doctor "$watch"
	has '^ok longest round trip' links net one "$sk" doctor "$watch"
	hasnt '^error|^warning' reachability net one "$sk" doctor "$watch"
done
expect 3 'for an agent' ip netns exec "$tag-one" "$sk" doctor "$token"
expect 3 'invitation' ip netns exec "$tag-one" env XDG_STATE_HOME="$dir/stranger" "$sk" doctor "$watch"

kill -KILL "${started[-1]}"
until_has '^warning n0[0-2] \(three, eu-three\) is dead.*start its agent again' nodes
exit 0
