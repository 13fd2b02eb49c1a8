# Makes small Debian systems; sourced after tests/lib.sh. Packages come from the mirror that apt uses on this machine,
# or from MIRROR.
#
#   can_make_debian               returns true if this machine can make a system; otherwise debian_why is the reason
#   make_debian SUITE FOLDER [PACKAGE,PACKAGE... [COMPONENT,COMPONENT...]]
#   apart COMMAND...              runs a command as the first process of its own namespaces
#   inside ROOT COMMAND           runs a shell command in that system, with no setting of this machine except its proxy
#   run_bundle ROOT ARCHIVE       unpacks a bundle there, runs five iterations as an ordinary user, and verifies them
debian_mirror='' debian_why=''

can_make_debian() {
	debian_mirror=${MIRROR:-$(. /etc/os-release && [ "$ID" = debian ] && apt_mirror)}
	debian_why=
	if [ "$(id -u)" != 0 ]; then
		debian_why="making a system needs root"
	elif ! command -v debootstrap >/dev/null; then
		debian_why="debootstrap is not there"
	elif ! unshare --mount --pid --fork true 2>/dev/null; then
		debian_why="no right to mount anything here"
	elif [ -z "$debian_mirror" ]; then
		debian_why="apt here has no mirror of Debian; MIRROR= says one"
	fi
	[ -z "$debian_why" ]
}

# Finds the mirror: the first source of apt that is a whole suite and not its updates.
apt_mirror() {
	local at
	at=$(apt-get update --print-uris 2>/dev/null |
		sed -n "s|^'\(.*\)/dists/[^/-]*/main/binary-.*|\1|p" | head -n 1)
	case $at in
	mirror+file:*) at=$(grep -Eo '^[a-z]+:[^[:space:]]+' "${at#mirror+file:}" | head -n 1) ;;
	esac
	echo "$at"
}

# When the command ends or is killed, its namespaces and everything mounted in them disappear.
apart() {
	unshare --mount --pid --fork --kill-child "$@" &
	started+=($!)
	wait $!
}

make_debian() {
	# An older debootstrap does not know newer Debian suites. The scripts of all suites are equal, so one script
	# makes them all.
	apart debootstrap --force-check-gpg --variant=minbase --include="${3:-}" --components="${4:-main}" "$1" "$2" \
		"$debian_mirror" "$([ -e "/usr/share/debootstrap/scripts/$1" ] || echo sid)" >"$dir/debootstrap.err" 2>&1 ||
		die "debootstrap cannot make $1"
	# Copies the settings with which this machine reaches its mirror.
	apt-config dump | grep -E '^Acquire::(https?|Check-|Retries|ForceIPv)' >"$2/etc/apt/apt.conf.d/host" || true
}

inside() {
	local root=$1
	shift
	apart sh -c 'cd "$1" && mount -t proc proc proc && mount --rbind /dev dev && mount --rbind /sys sys &&
		exec chroot . env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin ${http_proxy:+"http_proxy=$http_proxy"} \
			${https_proxy:+"https_proxy=$https_proxy"} sh -euc "$2"' sh "$root" "$*" </dev/null
}

run_bundle() {
	local root=$1 commits
	tar -xzf "$2" -C "$root/opt" || die "$root: the bundle cannot be unpacked"
	inside "$root" "useradd --create-home user; cd /opt/skippipe-*; PATH=\$PWD/bin:\$PATH; export PATH
		su user -c 'PATH=\$PATH; skippipe demo --headless --format jsonl --iterations 5 --time-scale 0 --run-dir ~/demo'" \
		>"$dir/events" 2>"$dir/demo.err" || die "$root: the bundle's demo: exit status $?"
	commits=$(count "$dir/events" commit)
	[ "$commits" = 5 ] || die "$root: $commits commits"
	inside "$root" '/opt/skippipe-*/bin/skippipe verify /home/user/demo --format json' >"$dir/verify.json" \
		2>"$dir/verify.err" || { cat "$dir/verify.json"; die "$root: verify finds a difference"; }
	echo "the bundle: $commits commits, $(field hashes <"$dir/verify.json") hashes the same; C library $(inside "$root" 'ldd --version' | sed -n '1s/.* //p')"
}
