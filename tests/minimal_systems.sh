#!/bin/bash
# What a person sees on a fresh machine: tests/minimal_systems.sh [SUITE...], Debian 13 and 12 unless said.
# Each system is made from nothing and gets git and make; the last commit is cloned there, `make demo` installs
# what it lacks and runs five iterations, and what they did is computed again to the same bits. So `make deps`
# names every package, and the source compiles with the libraries that each system has.
#
# Packages come from the mirror that apt uses on this machine, or from MIRROR. What is mounted is seen by the
# processes inside only, and goes with them.
. "$(dirname "$0")/lib.sh"
[ $# -gt 0 ] || set -- trixie bookworm
iterations=5

# Of the lists that apt would fetch, the first that is a whole suite's, not its updates'.
apt_mirror() {
	local at
	at=$(apt-get update --print-uris 2>/dev/null |
		sed -n "s|^'\(.*\)/dists/[^/-]*/main/binary-.*|\1|p" | head -n 1)
	case $at in
	mirror+file:*) at=$(grep -Eo '^[a-z]+:[^[:space:]]+' "${at#mirror+file:}" | head -n 1) ;;
	esac
	echo "$at"
}

# As the first process of namespaces of its own, of which nothing is left when it ends or is killed.
apart() {
	unshare --mount --pid --fork --kill-child "$@" &
	started+=($!)
	wait $!
}

inside() { # inside ROOT COMMAND: by a shell of that system, with none of this machine's settings but the proxy
	local root=$1
	shift
	apart sh -c 'cd "$1" && mount -t proc proc proc && mount --rbind /dev dev && mount --rbind /sys sys &&
		exec chroot . env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin ${http_proxy:+"http_proxy=$http_proxy"} \
			${https_proxy:+"https_proxy=$https_proxy"} sh -euc "$2"' sh "$root" "$*" </dev/null
}

make_system() { # make_system SUITE ROOT
	# An older debootstrap does not know the name of a newer Debian: all are made alike.
	apart debootstrap --force-check-gpg --variant=minbase --include=git,make "$1" "$2" "$mirror" \
		"$([ -e "/usr/share/debootstrap/scripts/$1" ] || echo sid)" >"$dir/debootstrap.err" 2>&1 ||
		die "debootstrap cannot make $1"
	# How this machine reaches its mirror.
	apt-config dump | grep -E '^Acquire::(https?|Check-|Retries|ForceIPv)' >"$2/etc/apt/apt.conf.d/host" || true
}

check_system() { # check_system SUITE
	local root=$dir/$1 events=$dir/events start=$SECONDS made commits
	make_system "$1" "$root"
	made=$SECONDS
	git clone -q --bare --depth 1 "file://$PWD" "$root/skippipe.git" || die "the commit cannot be cloned"
	inside "$root" "git clone -q /skippipe.git skippipe; cd skippipe
		make demo ARGS='--headless --format jsonl --iterations $iterations --time-scale 0 --run-dir /run/demo'" \
		>"$events" 2>"$dir/demo.err" || die "$1: make demo: exit status $?"
	commits=$(count "$events" commit)
	[ "$commits" = $iterations ] || die "$1: $commits commits"
	inside "$root" 'cd skippipe; build/bin/skippipe verify /run/demo --format json' >"$dir/verify.json" \
		2>"$dir/verify.err" || { cat "$dir/verify.json"; die "$1: verify finds a difference"; }
	echo "$1: made in $((made - start)) s, make demo and verify in $((SECONDS - made)) s: $commits commits, $(field hashes <"$dir/verify.json") hashes the same"
	rm -rf --one-file-system "$root"
}

[ "$(id -u)" = 0 ] || skip "making a system needs root"
need debootstrap
unshare --mount --pid --fork true 2>/dev/null || skip "no right to mount anything here"
mirror=${MIRROR:-$(. /etc/os-release && [ "$ID" = debian ] && apt_mirror)}
[ -n "$mirror" ] || skip "apt here has no mirror of Debian; MIRROR= says one"
echo "commit $(git rev-parse --short HEAD)$(git diff --quiet HEAD || echo ', without what is not committed')"
for suite in "$@"; do check_system "$suite"; done
