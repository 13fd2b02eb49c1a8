#!/bin/bash
# Makes a container image of a bundle, as an archive that podman and docker load:
#
#   deploy/image.sh BUNDLE.tar.gz IMAGE.tar
#
# It uses buildah, or else podman, and no registry.
set -eu
cd "$(dirname "$0")/.."
bundle=$1 image=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

root=$work/root
mkdir -p "$root/opt" "$root/var/lib/skippipe"
mkdir -m 1777 "$root/tmp"
# A container may run under any user number, so every user may write here.
chmod 1777 "$root/var/lib/skippipe"
tar -xzf "$bundle" -C "$root/opt"
mv "$root"/opt/skippipe-* "$root/opt/skippipe"

build() { # build COMMAND...: builds the image with this command
	"$@" -t "skippipe:$(cat VERSION)" -f deploy/Containerfile "$work"
}
rm -f "$image"
if command -v buildah >/dev/null; then
	build buildah bud --isolation chroot
	buildah push "skippipe:$(cat VERSION)" "docker-archive:$image:skippipe:$(cat VERSION)"
elif command -v podman >/dev/null; then
	build podman build
	podman save -o "$image" "skippipe:$(cat VERSION)"
else
	echo "image: neither buildah nor podman is installed" >&2
	exit 1
fi
echo "$image: podman load -i $image"
