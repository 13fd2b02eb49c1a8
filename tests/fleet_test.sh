#!/bin/bash
# `skippipe fleet` with real sshds on the wide-area test bed: each machine has a network, a process list and a home folder
# of its own. One machine listens at port 2222, one has the remains of a copy that was interrupted, one has another build,
# and one drops every packet. `up` starts the other four; status, logs, an agent that was killed, a changed token of the
# first `up`; `down` leaves no process and no file but the run.
. "$(dirname "$0")/lib.sh"
. tests/wan/bed.sh
need skippipe skippipe-controller skippipe-agent skippipe-key ip nsenter unshare ssh ssh-keygen pgrep readelf dpkg
sshd=$(command -v sshd || echo /usr/sbin/sshd)
[ -x "$sshd" ] || skip "sshd is not there"
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
unshare --mount --pid --fork true 2>/dev/null || skip "no right to mount anything here"
root_home=$(getent passwd 0 | cut -d : -f 6)
unset XDG_STATE_HOME XDG_CONFIG_HOME SKIPPIPE_JOIN

# Two places, 15 ms apart; node 5 is the laptop that nobody uses here, and the bed's controller is the hub.
awk 'BEGIN {
	split("Oslo Oslo Lisbon Lisbon Lisbon", place)
	printf "{\"format\": \"skippipe.cluster/1\", \"name\": \"fleet\", \"stages\": [5], \"activation_bytes\": 98304, \"microbatches_per_data_node\": 6, \"nodes\": ["
	for (i = 1; i <= 5; i++)
		printf "%s{\"id\": %d, \"location\": \"%s\", \"forward_s\": 0.1, \"backward_s\": 0.2, \"loss_s\": 0.01, \"memory\": 4}", (i > 1 ? ", " : ""), i - 1, place[i]
	for (m = 0; m < 2; m++) {
		printf "%s", m ? "]], \"bandwidth_bytes_per_s\": [" : "], \"links\": {\"latency_s\": ["
		for (i = 1; i <= 5; i++)
			for (j = 1; j <= 5; j++) {
				v = i == j ? 0 : place[i] == place[j] ? (m ? 1e8 : 0.0005) : (m ? 2e7 : 0.015)
				printf "%s%g", (j > 1 ? ", " : i > 1 ? "], [" : "["), v
			}
	}
	print "]]}}"
}' >"$dir/network.json"
bed_start --cluster "$dir/network.json"
machines=(m1 m2 m3 m4 m5 hub)
mkdir -p "$dir/home" "$dir/run"
ssh-keygen -q -t ed25519 -N '' -f "$dir/key" || skip "ssh-keygen makes no key"
ssh-keygen -q -t ed25519 -N '' -f "$dir/host_key"

# Becomes a machine: machine NAME COMMAND...
cat >"$dir/machine" <<END
#!/bin/bash
name=\$1
shift
mount --bind "$dir/home/\$name" "$root_home" && mount -t tmpfs tmpfs /run && mkdir -p /run/sshd &&
	hostname "\$name" && cd "$root_home" && export HOME=$root_home && exec "\$@"
END
# The first process of a machine: it ends orphans, as init does.
cat >"$dir/init" <<END
#!/bin/bash
"$sshd" -D -e -f /dev/null -p "\$1" -o HostKey="$dir/host_key" -o AuthorizedKeysFile="$dir/key.pub" -o StrictModes=no \
	-o PidFile=none -o UsePAM=no -o PermitRootLogin=prohibit-password -o MaxStartups=100 &
while :; do wait; sleep 0.2; done
END
chmod +x "$dir/machine" "$dir/init"
for i in "${!machines[@]}"; do
	name=${machines[i]}
	mkdir "$dir/home/$name"
	[ "$name" != hub ] || break
	port=22
	[ "$name" != m2 ] || port=2222
	nsenter --net="/var/run/netns/$bed_tag$i" unshare --mount --uts --pid --fork --kill-child --mount-proc \
		"$dir/machine" "$name" "$dir/init" $port >"$dir/$name.sshd" 2>&1 &
	started+=($!)
	init[i]=$!
done
mkdir -m 700 "$dir/home/hub/.ssh"
{
	for i in 0 2 3 4; do printf 'Host %s\n\tHostName %s\n' "${machines[i]}" "${bed_address[i]}"; done
	printf 'Host *\n\tIdentityFile %s\n\tStrictHostKeyChecking accept-new\n\tUserKnownHostsFile %s\n' "$dir/key" "$dir/known_hosts"
} >"$dir/home/hub/.ssh/config"
# The remains of an interrupted copy, and another build of this version.
version=$(cat VERSION)
mkdir -p "$dir/home/m3/.skippipe/.part-$version/skippipe-$version/bin" "$dir/home/m4/.skippipe/$version/bin"
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

archive=$(dirname "$bin")/skippipe-$version-$(uname -m).tar.gz
bundle=()
[ -e "$archive" ] || {
	archive=$dir/bundle.tar.gz
	deploy/bundle.sh "$(dirname "$bin")" "$archive" >"$dir/bundle.err" 2>&1 || die "no bundle can be made"
	bundle=(--bundle "$archive")
}
hub() { # hub COMMAND...: runs it on the hub
	nsenter --net="/var/run/netns/$bed_tag$bed_nodes" unshare --mount --uts "$dir/machine" hub "$@"
}
fleet() { # fleet NAME STATUS WORD...: runs skippipe fleet with its output in NAME.out
	local name=$1 status=$2 rc=0
	shift 2
	hub timeout -k 5 200 "$bin/skippipe" fleet "$@" >"$dir/$name.out" 2>"$dir/$name.err" </dev/null || rc=$?
	[ $rc = "$status" ] || { cat "$dir/$name.out"; die "$name: exit status $rc, expected $status"; }
}
undo+=('hub "$bin/skippipe" fleet down fleet.txt')
up=(up fleet.txt "${bundle[@]}" -- --stages 2,2 --skip 0 --model tiny --corpus text.txt --iterations 100000 --checkpoint-every 2)
iterations() { cat "$dir"/home/hub/.skippipe/fleet/*/controller/log 2>/dev/null | grep -c 'iteration [0-9]'; }

for i in "${!init[@]}"; do wait_text "$dir/${machines[i]}.sshd" 'Server listening' "${init[i]}" 30; done
begin=$(date +%s.%N)
fleet up 1 "${up[@]}"
cat "$dir/up.out"
