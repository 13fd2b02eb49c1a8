#!/bin/bash
# The bundle runs in a file system that contains nothing else: no C library, no shell, no terminal descriptions. A demo
# trains there with the bundle's own regions, themes and corpus, and verify recomputes the run.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "chroot needs root"
unshare --mount --pid --fork true 2>/dev/null || skip "no right to mount anything here"
need dpkg readelf
root=$dir/root archive=$dir/bundle.tar.gz
deploy/bundle.sh "$(dirname "$bin")" "$archive" >"$dir/bundle.err" 2>&1 || die "no bundle can be made"
mkdir -p "$root/proc" "$root/dev" "$root/tmp"
tar -xzf "$archive" -C "$root" || die "the archive cannot be unpacked"
home=$(cd "$root" && echo skippipe-*) && home=/$home

inside() { # inside COMMAND...: runs a command in new namespaces whose file system is the bundle only
	unshare --mount --pid --fork --kill-child sh -c 'root=$1; shift
		mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
		exec env -i HOME=/tmp TERM=dumb "$(command -v chroot)" "$root" "$@"' sh "$root" "$@" </dev/null
}

inside "$home/bin/skippipe" --version >"$dir/version" || die "it does not start"
grep -qx "skippipe $(cat VERSION)" "$dir/version" || die "another version"
inside "$home/bin/skippipe" demo --headless --format jsonl --agents 6 --iterations 3 --time-scale 0 --metrics 0 --run-dir /tmp/run \
	>"$dir/events" 2>"$dir/demo.err" || { cat "$dir/demo.err"; die "the demo failed"; }
[ "$(count "$dir/events" commit)" = 3 ] || die "not 3 commits"
inside "$home/bin/skippipe" verify /tmp/run >"$dir/verify.out" 2>&1 || { cat "$dir/verify.out"; die "verify finds a difference"; }
# People put links to a program into /usr/local/bin, and move the bundle to another folder.
mv "$root$home" "$root/elsewhere"
ln -s /elsewhere/bin/skippipe "$root/skippipe"
inside /skippipe plan --help >"$dir/help" || die "it does not start through a link"
grep -q -- --skip "$dir/help" || die "no help through a link"
echo "3 iterations and verify in an empty system; the bundle has $(du -h "$archive" | cut -f 1)"
