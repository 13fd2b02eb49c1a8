#!/bin/sh
# Checks and measures the layout of the documents and the code.
#
# The script fails on:
#
#   a line of prose over 100 columns in a document (tables and code are exempt);
#   docs/scheduling.md with 2,000 words or more, docs/performance.md and docs/convergence.md with 1,700 or more;
#   more than four files of controller/ that all call one another, directly or through others (a circle);
#   a relative link to a missing page or heading; the name of a missing page or script;
#   a function in docs/tour.md or in the index of docs/architecture.md that is not in the file beside it;
#   a name in CONTRIBUTING.md that is not in the code;
#   a comment that begins with a word for the line before it ("it is", "so", "the same").
#
# The script only prints:
#
#   the number of files in each folder (without tests) and the largest circle;
#   functions over 25 lines without a comment; static functions with a name of one word;
#   prototypes with a comment above, beside, or at the top of their block.
set -eu
cd "$(dirname "$0")/.."
LC_ALL=C # awk counts bytes; the first byte of each UTF-8 character is a column
export LC_ALL
broken=$(mktemp)
trap 'rm -f "$broken"' EXIT
documents=$(ls ./*.md docs/*.md | sed 's|^\./||')

# Prose over 100 columns.
awk '
	FNR == 1 { fenced = 0 }
	/^[ \t]*```/ { fenced = !fenced; next }
	fenced || /^[ \t]*\|/ || /^(    |\t)/ { next }
	{ line = $0; gsub(/[\200-\277]/, "", line) }
	length(line) > 100 { printf "%s:%d: %d columns of prose\n", FILENAME, FNR, length(line) }
' $documents >>"$broken"

words() { # words FILE MOST: fails if the document has MOST words or more
	n=$(wc -w <"$1")
	echo "$1: $n words (fewer than $2)"
	[ "$n" -lt "$2" ] || echo "$1: $n words, of fewer than $2" >>"$broken"
}
words docs/scheduling.md 2000
words docs/performance.md 1700
words docs/convergence.md 1700

# Links [text](page#heading), and headings as GitHub names them.
awk '
	function slug(s) {
		s = tolower(s)
		gsub(/[^a-z0-9 _-]/, "", s)
		gsub(/ /, "-", s)
		return s
	}
	FNR == 1 { fenced = 0 }
	/^[ \t]*```/ { fenced = !fenced; next }
	fenced { next }
	/^#+ / { s = $0; sub(/^#+ /, "", s); heading[FILENAME "#" slug(s)] = 1 }
	{
		rest = $0
		gsub(/`[^`]*`/, "", rest)
		while (match(rest, /\]\([^)]*\)/)) {
			target = substr(rest, RSTART + 2, RLENGTH - 3)
			rest = substr(rest, RSTART + RLENGTH)
			if (target ~ /^[a-z]+:/)
				continue
			n++
			from[n] = FILENAME
			at[n] = FNR
			to[n] = target
		}
	}
	END {
		for (i = 1; i <= n; i++) {
			page = to[i]
			sub(/#.*/, "", page)
			folder = from[i] ~ /\// ? "docs/" : ""
			path = page == "" ? from[i] : folder page
			while (sub(/[^\/]+\/\.\.\//, "", path)) ;
			missing = system("test -e \"" path "\"")
			if (!missing && to[i] ~ /#/ && !((path substr(to[i], index(to[i], "#"))) in heading))
				missing = 1
			if (missing)
				printf "%s:%d: nothing at %s\n", from[i], at[i], to[i]
		}
	}
' $documents >>"$broken"

# Every page and script that a document or the code names must exist.
git ls-files -co --exclude-standard -- '*.md' '*.[ch]' '*.sh' '*.cu' Makefile |
	xargs grep -onE '([a-z]+/)?(docs|tests|bench|deploy)/[a-z_]+\.(md|sh)\b' 2>/dev/null |
	awk -F: '
		!($3 in missing) { missing[$3] = system("test -e " $3) }
		missing[$3] { print $1 ":" $2 ": names " $3 ", which is missing" }
	' >>"$broken"

# The index "Where is ..." and the tour: each function must be in the file that they name.
awk '
	/^#/ { index_begins = /^## (Where is|One )/ }
	index_begins && /^\| .*\| `/ {
		n = split($0, cell, "|")
		m = split(cell[3], file, ",")
		k = split(cell[4], name, ",")
		for (i = 1; i <= k; i++)
			if (match(name[i], /`[a-z_0-9]+`/)) {
				word = substr(name[i], RSTART + 1, RLENGTH - 2)
				path = file[k == m ? i : m]
				gsub(/[ `]/, "", path)
				if (system("grep -qE \"^[a-z].*[ *]" word "\\(\" " path " 2>/dev/null"))
					printf "%s:%d: no %s in %s\n", FILENAME, FNR, word, path
			}
	}
' docs/architecture.md docs/tour.md >>"$broken"

# Names in the recipes of CONTRIBUTING.md must occur in the code.
grep -oE '`[a-z]+(_[a-z_0-9]+)+`' CONTRIBUTING.md | tr -d '`' | sort -u | while read -r name; do
	git grep -qwF -e "$name" -- '*.[ch]' '*.sh' Makefile || echo "CONTRIBUTING.md: names $name, which is not there"
done >>"$broken"

folders="base wire schedule model planner store agent controller verify doctor tui cli"
files=$(find $folders -name '*.[ch]' -not -path '*/tests/*' | sort)

# Finds the calls between files of a folder, and the largest set of files that all reach one another.
for folder in $folders; do
	awk -v folder="$folder" -v broken="$broken" '
		function name_of(line) {
			if (!match(line, /[a-z_0-9]+\(/))
				return ""
			return substr(line, RSTART, RLENGTH - 1)
		}
		FNR == 1 { f++ }
		{ line[++n] = $0; file[n] = f }
		/^[a-z][^;=]*\(/ && !/^static/ && !/;[ \t]*$/ {
			if ((name = name_of($0)) != "")
				home[name] = f
		}
		END {
			for (i = 1; i <= n; i++) {
				text = line[i]
				gsub(/"[^"]*"/, "", text)
				sub(/^[ \t]*\*.*|\/\*.*/, "", text)
				gsub(/[^a-z_0-9]+/, " ", text)
				m = split(text, word, " ")
				for (j = 1; j <= m; j++)
					if ((word[j] in home) && home[word[j]] != file[i])
						reach[file[i], home[word[j]]] = 1
			}
			for (k = 1; k <= f; k++)
				for (i = 1; i <= f; i++)
					if ((i, k) in reach)
						for (j = 1; j <= f; j++)
							if ((k, j) in reach)
								reach[i, j] = 1
			for (i = 1; i <= f; i++) {
				c = 1
				for (j = 1; j <= f; j++)
					if (i != j && ((i, j) in reach) && ((j, i) in reach))
						c++
				if (c > largest)
					largest = c
			}
			printf "%-11s %3d files, largest circle %d\n", folder "/", f, largest
			if (folder == "controller" && largest > 4)
				printf "%s/: a circle of %d files that call each other (at most 4)\n", folder, largest >>broken
		}
	' $(find "$folder" -name '*.c' -not -path '*/tests/*' -not -path '*/check/*' | sort)
done

# Counts the files of a folder; x.c and x.h count as one file.
for folder in $(find $folders -type d -not -path '*/tests*' | sort); do
	n=$(find "$folder" -maxdepth 1 -name '*.[ch]' | sed 's|\.[ch]$||' | sort -u | wc -l)
	[ "$n" -le 16 ] || echo "$folder: $n files side by side (at most 16)"
done

echo "$files" | xargs awk '
	FNR == 1 { inside = 0; comment = 0; above = 0 }
	FILENAME ~ /\.h$/ {
		if (/^[a-z][^={]*\(/ && !/^(static|typedef|struct [a-z_]+ \{|#)/) {
			prototypes++
			if (above || /\/\*/)
				documented++
		}
		above = /\*\/[ \t]*$/ && !/^[a-z]/
		next
	}
	!inside && /^[a-z].*\(/ && !/;[ \t]*$/ { comment = above; bare($0) }
	!inside && /^\{/ { inside = 1; lines = 0; next }
	inside && /^\}/ {
		inside = 0
		if (lines > 25) {
			long++
			if (!comment)
				silent++
		}
		above = 0
		next
	}
	inside { lines++; if (/\/\*/) comment = 1; next }
	/\*\/[ \t]*$/ { above = 1 }
	/^$/ { above = 0 }
	function bare(s) {
		if (s !~ /^static/ || !match(s, /[A-Za-z_0-9]+\(/))
			return
		statics++
		if (substr(s, RSTART, RLENGTH - 1) !~ /_/)
			words++
	}
	END {
		printf "functions over 25 lines: %d, %d%% without a comment\n", long, 100 * silent / long
		printf "static functions: %d, %d%% named by one bare word\n", statics, 100 * words / statics
		printf "prototypes: %d, %d%% documented\n", prototypes, 100 * documented / prototypes
	}
'

# A reader may reach a comment by a search and not see the line above it. Therefore a comment must not begin with a word
# that refers to that line.
echo "$files" | xargs grep -nE '^[[:space:]]*/\* (It|Its|So|The same|They|And|Or|But|Else|Those)[ ,]' |
	sed 's|$|: the subject is in another line|' >>"$broken"

cat "$broken"
[ ! -s "$broken" ]
