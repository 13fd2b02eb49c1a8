#!/bin/sh
# Fails when an include breaks the table of docs/architecture.md: a folder may include its own
# headers and those of the folders in its `uses_` line of the Makefile, and the libraries that
# only one folder may know stay there.
set -eu
cd "$(dirname "$0")/.."
bad=0

for folder in base wire schedule model store agent controller verify tui cli; do
	uses=$(sed -n "s/^uses_$folder *:= *//p" Makefile)
	[ -n "$uses" ] || { echo "layers: no uses_$folder line in the Makefile"; exit 1; }
	for file in $(find "$folder" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh'); do
		sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file" | while read -r inc; do
			top=${inc%%/*}
			case " $uses " in *" $top "*) continue ;; esac
			echo "$file: includes \"$inc\", and $folder may use only: $uses"
		done
	done
done >"${TMPDIR:-/tmp}/layers.$$" || true

only() { # only REGEX WHERE: the header may be included only under WHERE
	grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*<$1" --include='*.c' --include='*.h' --include='*.cu' \
		base wire schedule model store agent controller verify tui cli | grep -vE "^($2)" || true
}
{
	only 'nanomsg/' 'wire/'
	only 'sodium' 'wire/'
	only '(ncurses|curses|term)\.h' 'tui/'
	only 'sqlite3' 'store/'
	only '(cuda|cublas|cudnn)' 'model/cuda/'
	only '(oneapi/|dnnl|immintrin)' 'model/cpu/'
	# The controller decides learning rate and clip, so it knows the recipe: plain data, no tensors.
	grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"model/' controller | grep -v '"model/config.h"' || true
} >>"${TMPDIR:-/tmp}/layers.$$"
if [ -s "${TMPDIR:-/tmp}/layers.$$" ]; then
	cat "${TMPDIR:-/tmp}/layers.$$"
	bad=1
fi
rm -f "${TMPDIR:-/tmp}/layers.$$"
exit $bad
