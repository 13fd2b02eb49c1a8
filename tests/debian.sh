# Makes small Debian systems; sourced after tests/lib.sh. Packages come from the mirror that apt uses on this machine,
# or from MIRROR.
#
#   can_make_debian               returns true if this machine can make a system; otherwise debian_why is the reason
#   make_debian SUITE FOLDER [PACKAGE,PACKAGE... [COMPONENT,COMPONENT...]]
#   apart COMMAND...              runs a command as the first process of its own namespaces
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
	# An older debootstrap does not know newer Debian suites. Their scripts are equal, so one script makes all
	# suites.
	apart debootstrap --force-check-gpg --variant=minbase --include="${3:-}" --components="${4:-main}" "$1" "$2" \
		"$debian_mirror" "$([ -e "/usr/share/debootstrap/scripts/$1" ] || echo sid)" >"$dir/debootstrap.err" 2>&1 ||
		die "debootstrap cannot make $1"
	# Copies the settings with which this machine reaches its mirror.
	apt-config dump | grep -E '^Acquire::(https?|Check-|Retries|ForceIPv)' >"$2/etc/apt/apt.conf.d/host" || true
}
