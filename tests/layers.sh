#!/bin/sh
# Checks includes against the table of docs/architecture.md. A folder may include its own headers and those of the
# folders in its `uses_` line of the Makefile. Some libraries may be included by one folder only.
set -eu
cd "$(dirname "$0")/.."
found=$(mktemp)
trap 'rm -f "$found"' EXIT
folders=
for folder in base wire schedule model store agent controller verify tui cli; do
	[ -d "$folder" ] && folders="$folders $folder"
done

includes() { sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$1"; }
for folder in $folders; do
	uses=$(sed -n "s/^uses_$folder *:= *//p" Makefile)
	[ -n "$uses" ] || echo "Makefile: no line uses_$folder"
	find "$folder" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | while read -r file; do
		includes "$file" | while read -r inc; do
			case " $uses " in *" ${inc%%/*} "*) continue ;; esac
			echo "$file: includes \"$inc\", and $folder may use only: $uses"
		done
	done
done >"$found"

only() { # only REGEX WHERE: the header may be included only under WHERE
	grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*<$1" --include='*.c' --include='*.h' \
		--include='*.cu' --include='*.cuh' $folders | grep -vE "^($2)" || true
}
{
	only 'nanomsg/' 'wire/'
	only 'sodium' 'wire/'
	only '(ncurses|curses|term)\.h' 'tui/'
	only 'sqlite3' 'store/'
	only '(cuda|cublas|cudnn)' 'model/cuda/'
	only '(oneapi/|dnnl|immintrin)' 'model/cpu/'
} >>"$found"
cat "$found"
[ ! -s "$found" ]
