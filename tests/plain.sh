#!/bin/sh
# Checks that the code is easy to read: width of lines, sizes of structs, words that readers stumble over.
#
# The script fails on:
#
#   a line of C or CUDA over 100 columns, where a tab ends at the next multiple of 8;
#   a struct with more than 30 fields or more than 5 booleans, except messages (wire/msg.h);
#   a comment that begins with Who, What, Whether, Of or Which, because its subject is a clause;
#   a word or phrase for which there is a plainer one (the list `dialect` below);
#   more than 3 .c files that include controller/controller.h.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
found=$(mktemp)
trap 'rm -f "$found"' EXIT
code=$(git ls-files -co --exclude-standard -- '*.[ch]' '*.cu' '*.cuh' '*.cc' | while read -r f; do
	[ ! -e "$f" ] || echo "$f"; done)
scripts=$(git ls-files -co --exclude-standard -- '*.sh' | while read -r f; do
	[ ! -e "$f" ] || echo "$f"; done)

# Lines over 100 columns. Bytes that continue a UTF-8 character take no column.
awk '
	{
		line = $0
		gsub(/[\200-\277]/, "", line)
		columns = 0
		n = split(line, part, "\t")
		for (i = 1; i <= n; i++) {
			columns += length(part[i])
			if (i < n)
				columns += 8 - columns % 8
		}
	}
	columns > 100 { printf "%s:%d: width: %d columns\n", FILENAME, FNR, columns }
' $code >>"$found"

# Counts the fields of structs by declarator. Fields of unnamed inner structs count too.
awk '
	/^struct [a-z_0-9]+ \{/ { name = $2; fields = booleans = 0; inside = 1; from = FNR; next }
	inside && /^\};?/ {
		if (fields > 30 || booleans > 5)
			printf "%s:%d: struct: %s has %d fields, %d of them booleans\n", FILENAME, from,
				name, fields, booleans
		inside = 0
		next
	}
	!inside { next }
	{
		line = $0
		while (match(line, /\/\*([^*]|\*+[^*\/])*\*+\//))
			line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
		if (comment) {
			if (!sub(/^.*\*\//, "", line))
				next
			comment = 0
		}
		if (sub(/\/\*.*/, "", line))
			comment = 1
		statement = statement " " line
		while ((end = index(statement, ";")) > 0) {
			declared = substr(statement, 1, end - 1)
			statement = substr(statement, end + 1)
			gsub(/\([^()]*\)/, "", declared)
			gsub(/\([^()]*\)/, "", declared)
			gsub(/.*[{}]/, "", declared)
			if (declared !~ /[a-z]/)
				continue
			fields += split(declared, part, ",")
			if (declared ~ /^[ \t]*bool /)
				booleans += split(declared, part, ",")
		}
	}
' $(echo "$code" | grep -v '^wire/msg\.h$') >>"$found"

# Comments whose subject is a clause.
grep -nE '(/\*+|^[[:space:]]*#+) *(Who|What|Whether|Of|Which)( |:)' $code $scripts |
	sed -E 's/^([^:]*:[0-9]+):[[:space:]]*/\1: opening: /' >>"$found" || true

# Words and phrases for which there is a plainer word.
dialect='told|anew|mended|doomed|disowned|shunned|unheard|as usual|let go|lets go|stands? in|standing in'
dialect="$dialect|left behind|other ways|its word|their word|word of it|makes? do|comes? to nothing"
grep -nowE "([a-z]+_)*($dialect)(_[a-z]+)*" $code $scripts README.md CONTRIBUTING.md docs/*.md |
	grep -v '^tests/plain\.sh:' |
	sed -E 's/^([^:]*:[0-9]+):/\1: dialect: /' >>"$found" || true

holders=$(grep -l '#include "controller/controller.h"' $(echo "$code" | grep '\.c$' |
	grep -v /tests/) | wc -l)
echo "files that include controller/controller.h: $holders (at most 3)"
[ "$holders" -le 3 ] || echo "controller/controller.h: struct: $holders files include it" >>"$found"
for kind in width struct opening dialect; do
	echo "$kind: $(grep -c ": $kind: " "$found" || true) places"
done
cat "$found"
[ ! -s "$found" ]
