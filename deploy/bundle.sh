#!/bin/bash
# Writes one archive that runs on any Linux of this processor, without root and without installation:
#
#   deploy/bundle.sh BUILD-FOLDER ARCHIVE.tar.gz
#
# The archive has the programs, every library that they are linked with, the C library and its loader (deploy/launch.c),
# themes, regions, the default corpus, and the licences of all of these. It has no GPU driver:
# programs use the driver of the system.
# The same programs and libraries give the same archive, byte for byte.
set -eu
cd "$(dirname "$0")/.."
build=$1 archive=$2
version=$(cat VERSION)
name=skippipe-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name
mkdir -p "$root/bin" "$root/lib/programs" "$root/share/skippipe/themes" "$root/share/licences"

fail() { echo "bundle: $*" >&2; exit 1; }

# licences FILE...: copies the licences of the packages that the files belong to.
licences() {
	local found package file
	# dpkg may list a file under /lib/..., although its path in the file system is
	# /usr/lib/...
	found=$(dpkg -S "$@" 2>/dev/null || dpkg -S "${@#/usr}" 2>/dev/null) || fail "a file that no package has, so its licence is unknown, is among these: $*"
	for package in $(sed 's/:.*//' <<<"$found" | sort -u); do
		file=/usr/share/doc/$package/copyright
		[ -r "$file" ] || fail "$file, the licence of the package $package, is missing"
		cp -L "$file" "$root/share/licences/$package"
	done
}

programs=("$build"/bin/skippipe*)
strip -s -o "$root/bin/skippipe" "$build/deploy/launch"
for program in "${programs[@]}"; do
	strip -s -o "$root/lib/programs/${program##*/}" "$program"
	[ -e "$root/bin/${program##*/}" ] || ln "$root/bin/skippipe" "$root/bin/${program##*/}"
done
loader=$(readelf -l "${programs[0]}" | sed -n 's/.*interpreter: \(.*\)\].*/\1/p')
install -m 755 "$(realpath "$loader")" "$root/bin/skippipe-loader"
licences "$(realpath "$loader")"

# For each library: the name by which programs ask for it, and the path to which the name leads.
ldd "${programs[@]}" | grep -q 'not found' && fail "a library is missing: $(ldd "${programs[@]}" | grep 'not found' | sort -u)"
ldd "${programs[@]}" | sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | sort -u >"$work/libraries"
while read -r library path; do
	install -m 644 "$(realpath "$path")" "$root/lib/$library"
	licences "$(realpath "$path")"
done <"$work/libraries"

cp LICENSE "$root/share/licences/skippipe"
cp themes/*.json "$root/share/skippipe/themes"
cp deploy/*.json "$root/share/skippipe"
corpus=/usr/share/games/fortunes
if [ -d "$corpus" ]; then
	mkdir "$root/share/skippipe/fortunes"
	find "$corpus" -maxdepth 1 -type f ! -name '*.*' ! -name ascii-art -exec cp {} "$root/share/skippipe/fortunes" \;
	texts=("$root"/share/skippipe/fortunes/*)
	licences "${texts[@]/#"$root/share/skippipe/fortunes"/$corpus}"
fi
cp README.md "$root"
mkdir -p "$(dirname "$archive")"
# The files get the date of the version in git, so that the archive does not depend on when it is
# made.
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX --mtime="@$(git log -1 --format=%ct 2>/dev/null || echo 0)" \
	-C "$work" -c "$name" | gzip -n -6 >"$archive.part"
mv "$archive.part" "$archive"
echo "$archive: $(du -h "$archive" | cut -f 1), unpacked $(du -sh "$root" | cut -f 1)"
