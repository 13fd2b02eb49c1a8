#!/bin/bash
# `skippipe fleet` with real sshds on the wide-area test bed. Each machine has its own network, processes and home
# folder. One machine listens at port 2222, one has the remains of an interrupted copy, one has another build, and one
# drops every packet. `up` starts the other four, and later restarts an agent that was killed. status and logs show all
# machines, and no host can control the terminal through them. `down` leaves no process, and no files except those of
# the run.
#
# The controller of a second fleet is on a host. Its `up` is interrupted and repeated, and its `down` also reaches a
# host that was removed from the file.
. "$(dirname "$0")/lib.sh"
. tests/wan/bed.sh
. tests/wan/machines.sh
need skippipe-verify

# Two places, 15 ms apart. The hub is the controller's machine of the bed; the bed's laptop, node 5, is not used.
bed_places Oslo Oslo Lisbon Lisbon Lisbon >"$dir/network.json"
bed_start --cluster "$dir/network.json"
machines_begin
# A script replaces systemd's user units; only m4 has it.
mkdir "$dir/systemd"
printf '#!/bin/sh\necho Linger=yes\n' >"$dir/systemd/loginctl"
printf '#!/bin/sh\nexit 0\n' >"$dir/systemd/systemctl"
printf '#!/bin/sh\nwhile [ "$1" != sh ]; do shift; done\nsetsid "$@" </dev/null >/dev/null 2>&1 &\n' >"$dir/systemd/systemd-run"
chmod +x "$dir"/systemd/*
machine m1 0 22
# On m2 loginctl waits for a bus that does not answer.
mkdir "$dir/stuck"
printf '#!/bin/sh\nexec sleep 300\n' >"$dir/stuck/loginctl"
cp "$dir/systemd/systemd-run" "$dir/stuck"
chmod +x "$dir"/stuck/*
machine_path=$dir/stuck machine m2 1 2222
# A provider of rented machines gives the variables with the outside address to the first process of a machine only, not
# to the sessions of sshd.
machine m3 2 22 VAST_TCP_PORT_7755=7755 "PUBLIC_IPADDR=${bed_address[2]}"
machine_path=$dir/systemd machine m4 3 22
machine m5 4 22
{
	for i in 0 2 3 4; do printf 'Host m%s\n\tHostName %s\n' $((i + 1)) "${bed_address[i]}"; done
	printf 'Host m5\n\tConnectTimeout 2\n'
	machines_ssh
} >"$dir/home/hub/.ssh/config"
# m3 has the remains of an interrupted copy, and m4 has another build of this version.
version=$(cat VERSION)
mkdir -p "$dir/home/m3/.skippipe/.part-$version-agent-m3/skippipe-$version/bin" "$dir/home/m4/.skippipe/$version/bin"
printf '#!/bin/sh\necho "skippipe %s"\n' "$version" >"$dir/home/m4/.skippipe/$version/bin/skippipe"
chmod +x "$dir/home/m4/.skippipe/$version/bin/skippipe"
cat docs/*.md >"$dir/home/hub/text.txt"
cat >"$dir/home/hub/fleet.txt" <<END
# A fleet of five, four of which answer.
m1                                    place=oslo
root@${bed_address[1]}:2222  name=m2  place=oslo
m3                                    place=lisbon
m4  # the last
m5
END
bed_ask link controller 4 cut >/dev/null || bed_ask link 5 4 cut >/dev/null || die "the link is not cut"

fleet_bundle
undo+=('hub "$bin/skippipe" fleet down fleet.txt')
up=(up fleet.txt "${bundle[@]}" -- --stages 2,2 --skip 0 --model tiny --corpus text.txt --iterations 100000
	--checkpoint-every 2 --format jsonl)

machines_wait
begin=$(date +%s.%N)
fleet up 1 "${up[@]}"
cat "$dir/up.out"
[ "$(grep -c ' joined as n' "$dir/up.out")" = 4 ] || die "not four hosts have joined"
grep -q '^m5 .*FAILED: .*\(timed out\|Connection refused\)' "$dir/up.out" || die "it does not say why m5 fails"
[ "$(grep 'a unit of systemd' "$dir/up.out")" = "$(grep -E '^m4 .*its agent runs' "$dir/up.out")" ] || die "not m4 alone has a unit"
[ "$(grep -c 'has skippipe .* now' "$dir/up.out")" = 4 ] || die "not four bundles were copied"
for _ in $(seq 600); do [ "$(fleet_iterations)" -ge 1 ] && break; sleep 0.1; done
[ "$(fleet_iterations)" -ge 1 ] || die "no iteration was committed"
awk -v begin="$begin" -v end="$(date +%s.%N)" 'BEGIN { printf "%5.1f s  the first commit\n", end - begin }'

grep -q "tensors at tcp://${bed_address[2]}:7755," "$dir"/home/m3/.skippipe/fleet/*/agent-m3/log ||
	die "m3 does not use the port that its provider maps"

# ---- on each host the token is in one file, which only its user can read, and nowhere else
token=$(cat "$dir"/home/m1/.skippipe/fleet/*/agent-m1/token)
case $token in skippipe1_?*) ;; *) die "no token: $token" ;; esac
[ "$(stat -c %a "$dir"/home/m?/.skippipe/fleet/*/agent-m?/token | sort -u)" = 600 ] || die "others may read the token"
grep -rlF "${token#*_}" "$dir" | grep -v '/agent-m[1-4]/token$' && die "a file contains the token"
for file in cmdline environ; do
	cat /proc/[0-9]*/$file 2>/dev/null | tr '\0' '\n' | grep -qFf "$(echo "$dir"/home/m1/.skippipe/fleet/*/agent-m1/token)" && die "the $file of a process shows the token"
done

# ---- status and logs
fleet status 1 status fleet.txt
for m in m1 m2 m3 m4; do
	grep -qE "^$m +runs, process [0-9]+, version $version, n[0-3]" "$dir/status.out" || { cat "$dir/status.out"; die "no line of $m"; }
done
grep -qE '^m5 +FAILED: ' "$dir/status.out" || die "no line of m5"
grep -q '^controller  *runs, process' "$dir/status.out" || die "no line of the controller"
grep -qiE 'healthy|degraded' "$dir/status.out" || { cat "$dir/status.out"; die "no state of the run"; }
fleet logs 1 logs fleet.txt -n 5
for m in m1 m2 m3 m4 controller; do grep -qE "^$m +.* INFO|^$m +20|^$m +\{\"event\"" "$dir/logs.out" || { cat "$dir/logs.out"; die "no log of $m"; }; done
grep -qE '^m5 +FAILED: ' "$dir/logs.err" || die "logs do not say that m5 fails"

# ---- a host tries to control the terminal, and floods it
log=$(echo "$dir"/home/m1/.skippipe/fleet/*/agent-m1/log)
{ printf 'it \033]0;owned\007 says '; head -c 100000 /dev/zero | tr '\0' 'x'; echo; } >>"$log"
fleet flood 1 logs fleet.txt -n 3
grep -q 'it ?\]0;owned? says xxx' "$dir/flood.out" || die "the line is not cleaned"
[ "$(wc -c <"$dir/flood.out")" -lt 20000 ] || die "the line is not cut"
yes 'a long log' | head -c 3000000 >>"$log"
fleet many 1 logs fleet.txt -n 100000
grep '^m1 .*FAILED' "$dir/many.err" && die "a log of more than 1 MiB cannot be printed"

# ---- an agent is killed, and up is repeated
before=$(fleet_iterations)
pid=$(sed 's/ .*//' "$dir"/home/m2/.skippipe/fleet/*/agent-m2/pid)
on_machine m2 kill -KILL "$pid" || die "the agent of m2 is not killed"
rm -r "$dir/home/m2/run" # the agent's key was in this folder, so the next agent of m2 makes a new key
fleet again 1 "${up[@]}"
[ "$(grep -c ' joined as n' "$dir/again.out")" = 4 ] || { cat "$dir/again.out"; die "not four have joined again"; }
[ "$(grep -c 'its agent runs$' "$dir/again.out")" -ge 4 ] || die "up has started agents that ran"
grep -q 'copying' "$dir/again.out" && die "up has copied a bundle again"
for _ in $(seq 600); do [ "$(fleet_iterations)" -ge $((before + 3)) ] && break; sleep 0.1; done
[ "$(fleet_iterations)" -ge $((before + 3)) ] || die "the run does not go on"

# ---- Ctrl-C ends logs -f, here and on the hosts
"${as_hub[@]}" "$bin/skippipe" fleet logs fleet.txt -f -n 2 >"$dir/follow.out" 2>"$dir/follow.err" &
follow=$!
started+=($follow)
for m in m1 m2 m3 m4; do wait_text "$dir/follow.out" "^$m " $follow 30; done
kill -TERM $follow
wait $follow
for _ in $(seq 100); do pgrep -f "tail -n 2 -F .*agent-m" >/dev/null || break; sleep 0.1; done
pgrep -fa "tail -n 2 -F .*agent-m" && die "a tail is left"

# ---- down, twice
fleet down 0 down fleet.txt
cat "$dir/down.out"
[ "$(grep -c '^m[1-4]  *nothing runs' "$dir/down.out")" = 4 ] || die "not four hosts have ended"
for m in m1 m2 m3 m4; do
	left=$(machine_processes $m) && die "a process is left on $m: $left"
done
pgrep -fa "skippipe.*$dir/home" && die "a process is left"
# Only the hub's own network is searched, because a test beside this one may have a controller, too.
for pid in $(ip netns pids "$bed_tag$bed_nodes"); do
	grep -z skippipe-controller "/proc/$pid/cmdline" && die "the controller is left"
done
[ -z "$(fleet_leftovers)" ] || { fleet_leftovers; die "files are left"; }
# The controller's state also counts how often each agent has failed.
[ "$(cd "$dir/home/hub/.local/state/skippipe" && ls | grep -vxF admitted.failures | sort | tr '\n' ' ')" = 'admitted admitted.lock controller.key ' ] ||
	die "the hub keeps $(ls "$dir/home/hub/.local/state/skippipe")"
grep -E ' agent m[1-5]' "$dir/home/hub/.local/state/skippipe/admitted" && die "an agent is still admitted"
hub "$bin/skippipe" invite --list >"$dir/invitations.out" || die "no list of invitations"
[ "$(grep -c revoked "$dir/invitations.out")" = 2 ] || { cat "$dir/invitations.out"; die "not both invitations are revoked"; }
hub "$bin/skippipe" verify run >"$dir/verify.out" 2>&1 || { cat "$dir/verify.out"; die "verify finds a difference"; }

# ---- the controller is on a host; up is interrupted and repeated; down reaches a host that was removed from the file
printf 'm1\nm3\n' >"$dir/home/hub/two.txt"
cp "$dir/home/hub/text.txt" "$dir/home/m1/text.txt"
two=(up two.txt "${bundle[@]}" --controller m1 --run-dir second -- --skip 0 --corpus text.txt --checkpoint-every 1)
"${as_hub[@]}" "$bin/skippipe" fleet "${two[@]}" >"$dir/cut.out" 2>"$dir/cut.err" </dev/null &
cut=$!
started+=($cut)
wait_text "$dir/cut.out" 'its agent runs' $cut 60
kill -TERM $cut
wait $cut && die "up has not noticed the signal"
grep -q 'ended by a signal' "$dir/cut.err" || die "up does not say that it was interrupted"
fleet two 0 "${two[@]}"
[ "$(grep -c ' joined as n' "$dir/two.out")" = 2 ] || { cat "$dir/two.out"; die "not two have joined"; }
expect 1 'the fleet is up with' "${as_hub[@]}" "$bin/skippipe" fleet up two.txt --run-dir third
expect 1 'the fleet is up with another' "${as_hub[@]}" "$bin/skippipe" fleet up two.txt --controller m3
[ -e "$dir/home/m1/second/run.db" ] || die "the record is not on m1"
for _ in $(seq 300); do [ -e "$dir/home/m1/second/checkpoints" ] && break; sleep 0.1; done
printf 'm1\nroot@%s:2222 name=m3\n' "${bed_address[1]}" >"$dir/home/hub/two.txt"
expect 1 'm3 was m3 when the fleet came up' "${as_hub[@]}" "$bin/skippipe" fleet up two.txt
hub "$bin/skippipe" fleet status two.txt >"$dir/moved.out" 2>&1
grep -qE '^m3 +runs, process' "$dir/moved.out" || { cat "$dir/moved.out"; die "status looks for m3 at another machine"; }
echo m1 >"$dir/home/hub/two.txt"
mv "$dir/home/m1/.skippipe/$version" "$dir/aside"
fleet kept 1 down two.txt
grep -q "may still be admitted: skippipe $version is not here" "$dir/kept.out" || { cat "$dir/kept.out"; die "down does not say that it revoked nothing"; }
mkdir -p "$dir/home/m1/.skippipe"
mv "$dir/aside" "$dir/home/m1/.skippipe/$version"
fleet twodown 0 down two.txt --purge
grep -q '^m3  *nothing runs' "$dir/twodown.out" || { cat "$dir/twodown.out"; die "m3 was not ended"; }
grep ' agent m' "$dir/home/m1/.local/state/skippipe/admitted" && die "an agent is still admitted at m1"
fleet purged 1 down fleet.txt --purge
grep -q 'there is no record of this fleet' "$dir/purged.out" || { cat "$dir/purged.out"; die "down does not say that it has no record"; }
grep -q '^m5  *FAILED' "$dir/purged.out" || { cat "$dir/purged.out"; die "down does not say that it did not reach m5"; }
for m in m1 m2 m3 m4; do
	[ ! -e "$dir/home/$m/.skippipe" ] || die "purge leaves $(find "$dir/home/$m/.skippipe" | head -n 3)"
done
pgrep -fa "skippipe-(controller|agent).*second" && die "a process is left"

# ---- a machine that is gone for good (--forget)
# One machine has two agents, so two copies of the bundle arrive in its home folder at the same time.
printf 'm3\nm4\nm3 name=m3b listen=tcp://0.0.0.0:7756\n' >"$dir/home/hub/three.txt"
fleet three 0 up three.txt "${bundle[@]}" --run-dir third -- --stages 2,1 --skip 0 --model tiny --corpus text.txt
gone=$(basename "$(ls -d "$dir"/home/m4/.skippipe/fleet/*)")
# m4 answers, but one of its processes does not end. Therefore m4 must not be forgotten.
printf '#!/bin/sh\necho /proc/1/environ\n' >"$dir/systemd/grep"
chmod +x "$dir/systemd/grep"
fleet stuck 1 down three.txt --forget m4
rm "$dir/systemd/grep"
grep -q '^m4  *FAILED: a process does not end' "$dir/stuck.out" || { cat "$dir/stuck.out"; die "a host that answers is forgotten"; }
record=$dir/home/hub/.local/state/skippipe/fleet-$gone
sed -i 's/^\(.*\)name=m4$/root@127.0.0.1:9 name=m4/' "$record" # from now on the address of m4 does not answer
fleet lost 1 down three.txt
grep -q '^m4  *FAILED' "$dir/lost.out" || { cat "$dir/lost.out"; die "down does not say that it did not reach m4"; }
grep -q 'with --forget HOST' "$dir/lost.out" || { cat "$dir/lost.out"; die "down does not say what to do"; }
expect 1 '--forget m9: neither three.txt nor the record' "${as_hub[@]}" "$bin/skippipe" fleet down three.txt --forget m9
fleet forgotten 0 down three.txt --forget m4
grep -q '^m4  *forgotten; ' "$dir/forgotten.out" || { cat "$dir/forgotten.out"; die "down does not say that m4 is forgotten"; }
[ ! -e "$record" ] || die "the record of the fleet is left"
grep ' agent m[34]b\{0,1\}' "$dir/home/hub/.local/state/skippipe/admitted" && die "an agent is still admitted"
fleet rest 0 down three.txt # m4 was running all the time
grep -q '^m4  *nothing runs' "$dir/rest.out" || { cat "$dir/rest.out"; die "m4 was not ended"; }

# ---- what is refused
expect 1 'nothere: No such file' "${as_hub[@]}" "$bin/skippipe" fleet status nothere
# When a user logs out of m2, systemd ends the processes of this user. Only the user `nobody` is
# exempt.
printf '#!/bin/sh\nprintf "b true\\nas 1 \\"nobody\\"\\n"\n' >"$dir/stuck/busctl"
chmod +x "$dir/stuck/busctl"
printf 'm1\nroot@%s:2222 name=m2\n' "${bed_address[1]}" >"$dir/home/hub/one.txt"
expect 1 'a run needs two agents or more, and 1 runs' "${as_hub[@]}" "$bin/skippipe" fleet up one.txt "${bundle[@]}" --run-dir one
grep -q '^m2  *FAILED: .*run loginctl enable-linger' "$dir/expect.out" || { cat "$dir/expect.out"; die "up starts an agent that systemd will end"; }
fleet one 0 down one.txt --purge
echo 'm1 nmae=x' >"$dir/home/hub/bad.txt"
expect 1 'bad.txt, line 1: "nmae=x"' "${as_hub[@]}" "$bin/skippipe" fleet up bad.txt
expect 1 '/a b: ssh cannot use a folder with spaces' "${as_hub[@]}" sh -c 'mkdir "a b" && mount --bind /tmp /tmp &&
	mount -o remount,bind,ro /tmp && TMPDIR="$HOME/a b" exec "$0" fleet status fleet.txt' "$bin/skippipe"
[ -z "$(ls -A "$dir/home/hub/a b")" ] || die "the folder for sockets is left"
expect 2 'expected up, status, logs or down' "${as_hub[@]}" "$bin/skippipe" fleet start fleet.txt
# A test beside this one may use a folder of its own, and removes it after some time.
for f in /tmp/skippipe-fleet-*; do
	for _ in $(seq 1500); do [ "$f" -nt "$dir/network.json" ] || continue 2; sleep 0.1; done
	die "$f is left"
done
exit 0
