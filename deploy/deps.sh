#!/bin/sh
# Installs the missing packages of the build and the tests with apt-get. A package is missing if its
# header, file or program is missing.
set -eu

missing=
need() { # need PACKAGE TEST...: installs PACKAGE if TEST fails
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}
header() { echo "#include <$1>" | ${CC:-cc} -E -x c - ; }

if ! command -v "${CC:-cc}" >/dev/null 2>&1; then
	missing="gcc libc6-dev libnanomsg-dev libsodium-dev libssl-dev libjansson-dev libncurses-dev libsqlite3-dev libdnnl-dev libunistring-dev libmicrohttpd-dev libcmocka-dev"
else
	need libc6-dev       header stdio.h
	need libnanomsg-dev  header nanomsg/nn.h
	need libsodium-dev   header sodium.h
	need libssl-dev      header openssl/evp.h
	need libjansson-dev  header jansson.h
	need libncurses-dev  header ncurses.h
	need libsqlite3-dev  header sqlite3.h
	need libdnnl-dev     header oneapi/dnnl/dnnl.h
	need libunistring-dev header unictype.h
	need libmicrohttpd-dev header microhttpd.h
	need libcmocka-dev   sh -c 'printf "#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n" | ${CC:-cc} -E -x c -'
fi
# The default corpus is English text from a Debian package.
need fortunes        test -e /usr/share/games/fortunes/literature
need fortunes-min    test -e /usr/share/games/fortunes/fortunes

[ -n "$missing" ] || exit 0
echo "skippipe: installing what is missing:$missing"
if ! command -v apt-get >/dev/null 2>&1; then
	echo "skippipe: no apt-get here; install the equivalents of these Debian packages:$missing" >&2
	exit 1
fi
root=
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null 2>&1 || {
		echo "skippipe: not root and no sudo; as root: apt-get install$missing" >&2
		exit 1
	}
	root=sudo
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$log" 2>&1; }
install || { $root apt-get update >"$log" 2>&1 && install; } || {
	tail -n 20 "$log" >&2
	echo "skippipe: apt-get could not install:$missing" >&2
	exit 1
}
