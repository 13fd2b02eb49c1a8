# Machines that ssh reaches, on the wide-area test bed; sourced after tests/wan/bed.sh. Each has a process list, a home
# folder and an sshd of its own, in a network namespace. The hub, which has no sshd, is where the bed's controller is.
#
#   machines_begin                makes the keys; exits 77 with the reason if machines cannot be made here
#   machine NAME NETWORK PORT [VARIABLE=VALUE...]
#                                 starts a machine. NETWORK is a node of the bed or a namespace. Only the first process
#                                 of the machine has the variables, like those of a provider of rented machines.
#                                 $machine_path is put before the PATH of its sessions
#   machine_boot NAME NODE ROOT   starts a machine at a node of the bed that boots systemd of the file system ROOT, with
#                                 sshd; units of its users continue without a session
#   machines_ssh                  prints the last lines of the hub's ssh configuration
#   machines_wait                 waits until all accept connections, and sets ${machine_pid[NAME]} to the id that the
#                                 machine's first process has outside the machine
#   on_machine NAME COMMAND...    runs a command among the processes of a machine
#   machine_processes NAME        prints the processes of a machine except its first process and those of sshd
#   hub COMMAND...                runs a command on the hub, in its home folder; ${as_hub[@]} is the beginning of that
#                                 command
#   fleet NAME STATUS WORD...     runs skippipe fleet on the hub with its output in $dir/NAME.out
#   fleet_bundle                  sets archive to a bundle, which it makes if necessary, and bundle to the option that names
#                                 it to fleet up
#   fleet_iterations              prints the number of iterations that the controller on the hub has committed
#   fleet_leftovers               prints the files in the home folders that a fleet should not leave
#
# The home folder of a machine is $dir/home/NAME here, and $root_home on the machine.
declare -A machine_pid=()
machine_path=''

machines_begin() {
	need skippipe skippipe-controller skippipe-agent skippipe-key ip nsenter unshare ssh ssh-keygen hostname pgrep
	sshd=$(command -v sshd || echo /usr/sbin/sshd)
	[ -x "$sshd" ] || skip "sshd is not there"
	[ "$(id -u)" = 0 ] || skip "network namespaces need root"
	unshare --mount --pid --fork true 2>/dev/null || skip "no right to mount anything here"
	root_home=$(getent passwd 0 | cut -d : -f 6)
	unset XDG_STATE_HOME XDG_CONFIG_HOME SKIPPIPE_JOIN PUBLIC_IPADDR RUNPOD_PUBLIC_IP
	mkdir -p "$dir/home/hub" && mkdir -m 700 "$dir/home/hub/.ssh"
	ssh-keygen -q -t ed25519 -N '' -f "$dir/key" || skip "ssh-keygen makes no key"
	ssh-keygen -q -t ed25519 -N '' -f "$dir/host_key"
	# Becomes a machine: machine NAME ROOT COMMAND...
	cat >"$dir/machine" <<-END
		#!/bin/bash
		name=\$1 root=\$2
		shift 2
		# The units of systemd get mount namespaces, for which the root must be a mount.
		[ -z "\$root" ] || mount --bind "\$root" "\$root" || exit 1
		mount --bind "$dir/home/\$name" "\$root$root_home" && hostname "\$name" && export HOME=$root_home || exit 1
		[ -n "\$root" ] || {
			mount -t tmpfs tmpfs /run && mkdir -p /run/sshd && cd "$root_home" && exec "\$@"
			exit 1
		}
		mount -t tmpfs tmpfs "\$root/run" && mount -t proc proc "\$root/proc" && mkdir "\$root/run/sshd" &&
			mount -t sysfs sysfs "\$root/sys" && mount -t tmpfs tmpfs "\$root/dev" || exit 1
		for d in null zero full random urandom tty; do
			touch "\$root/dev/\$d" && mount --bind /dev/\$d "\$root/dev/\$d" || exit 1
		done
		mkdir "\$root/dev/pts" "\$root/dev/shm" && ln -s pts/ptmx "\$root/dev/ptmx" &&
			mount -t devpts -o newinstance,ptmxmode=0666 devpts "\$root/dev/pts" && mount -t tmpfs tmpfs "\$root/dev/shm" || exit 1
		if [ -d /sys/fs/cgroup/systemd ]; then
			mount -t tmpfs tmpfs "\$root/sys/fs/cgroup" && mkdir "\$root/sys/fs/cgroup/systemd" &&
				mount -t cgroup -o none,name=systemd cgroup "\$root/sys/fs/cgroup/systemd"
		else
			mount -t cgroup2 cgroup "\$root/sys/fs/cgroup"
		fi || exit 1
		exec chroot "\$root" "\$@"
	END
	# The first process of a machine: it ends orphans, as init does.
	cat >"$dir/init" <<-END
		#!/bin/bash
		trap 'exit 0' TERM
		"$sshd" -D -e -f /dev/null -p "\$1" -o HostKey="$dir/host_key" -o AuthorizedKeysFile="$dir/key.pub" -o StrictModes=no \
			\${2:+-o SetEnv=PATH=\$2:\$PATH} -o PidFile=none -o UsePAM=no -o PermitRootLogin=prohibit-password -o MaxStartups=100 &
		while :; do wait; sleep 0.2; done
	END
	chmod +x "$dir/machine" "$dir/init"
	as_hub=(nsenter --net="/var/run/netns/$bed_tag$bed_nodes" unshare --mount --uts "$dir/machine" hub '')
}

machine() {
	local name=$1 net=$2 port=$3
	case $net in [0-9]*) net=$bed_tag$net ;; esac
	shift 3
	mkdir -p "$dir/home/$name"
	env "$@" nsenter --net="/var/run/netns/$net" unshare --mount --uts --pid --fork --kill-child --mount-proc \
		"$dir/machine" "$name" '' "$dir/init" "$port" "$machine_path" >"$dir/$name.sshd" 2>&1 &
	machine_pid[$name]=$!
	started+=($!)
}

machine_boot() {
	local name=$1 root=$3 group=/sys/fs/cgroup
	[ ! -d $group/systemd ] || group=$group/systemd
	group=$group/$bed_tag$name
	mkdir "$group" 2>/dev/null || skip "no right to make a control group"
	undo+=("find $group -depth -type d -exec rmdir {} +")
	cp "$dir/key.pub" "$dir/host_key" "$root/etc/ssh/" || die "$root has no ssh"
	printf '%s\n' 'AuthorizedKeysFile /etc/ssh/key.pub' 'HostKey /etc/ssh/host_key' 'MaxStartups 100' \
		>"$root/etc/ssh/sshd_config.d/machine.conf"
	mkdir -p "$dir/home/$name" "$root/var/lib/systemd/linger"
	touch "$root/var/lib/systemd/linger/root"
	sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$group" nsenter --net="/var/run/netns/$bed_tag$2" \
		unshare --mount --uts --ipc --cgroup --pid --fork --kill-child "$dir/machine" "$name" "$root" \
		/usr/bin/env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd >"$dir/$name.sshd" 2>&1 &
	machine_pid[$name]=$!
	started+=($!)
}

machines_ssh() {
	printf 'Host *\n\tIdentityFile %s\n\tStrictHostKeyChecking accept-new\n\tUserKnownHostsFile %s\n' "$dir/key" "$dir/known_hosts"
}

# Returns true if the machine accepts connections. A machine that boots writes no log here.
machine_is_up() {
	grep -qs 'Server listening' "$dir/$1.sshd" ||
		nsenter --target "$2" --all --root --wd /bin/systemctl is-system-running 2>/dev/null | grep -qE '^(running|degraded)$'
}
machines_wait() {
	local name first
	for name in "${!machine_pid[@]}"; do
		for _ in $(seq 300); do
			first=$(pgrep -P "${machine_pid[$name]}")
			machine_is_up "$name" "$first" && break
			sleep 0.1
		done
		machine_is_up "$name" "$first" || die "$name accepts no connections: $(tail -n 3 "$dir/$name.sshd")"
		machine_pid[$name]=$first
		started+=("${machine_pid[$name]}") # unshare itself ignores SIGTERM
	done
}

on_machine() {
	local name=$1
	shift
	nsenter --target "${machine_pid[$name]}" --pid "$@"
}
machine_processes() {
	kill -0 "${machine_pid[$1]}" || die "the first process of $1 has ended"
	pgrep --ns "${machine_pid[$1]}" --nslist pid -a . | grep -vE "^[0-9]+ (/bin/bash $dir/init|$sshd |sshd(-session|-auth)?: |sleep 0.2$)"
}

hub() { "${as_hub[@]}" "$@"; }
fleet() {
	local name=$1 status=$2 rc=0
	shift 2
	hub timeout -k 5 200 "$bin/skippipe" fleet "$@" >"$dir/$name.out" 2>"$dir/$name.err" </dev/null || rc=$?
	[ $rc = "$status" ] || { cat "$dir/$name.out"; die "$name: exit status $rc, expected $status"; }
}

fleet_bundle() {
	archive=$(dirname "$bin")/skippipe-$(cat VERSION)-$(uname -m).tar.gz
	bundle=()
	[ "$archive" -nt "$bin/skippipe" ] && return 0
	need readelf dpkg
	archive=$dir/bundle.tar.gz
	deploy/bundle.sh "$(dirname "$bin")" "$archive" >"$dir/bundle.err" 2>&1 || die "no bundle can be made"
	bundle=(--bundle "$archive")
}

fleet_iterations() { cat "$dir"/home/hub/.skippipe/fleet/*/controller/log 2>/dev/null | grep -c '"event":"iteration"'; }
fleet_leftovers() {
	local version
	version=$(cat VERSION)
	(cd "$dir/home" && find . -mindepth 2 ! -path './hub/.ssh*' ! -path './*/run' ! -path './*/run/*' ! -path './*/.skippipe' \
		! -path "./*/.skippipe/$version" ! -path "./*/.skippipe/$version/*" ! -path './hub/*.txt' ! -path './hub/.local*' ! -path './*/.cache*')
}
