#!/bin/sh
# Checks includes against the table of docs/architecture.md. A folder may include its own headers, and those of the
# folders in its `uses_` line of the Makefile. Some libraries may be included by one folder only.
#
# Checks the order of subfolders. The `floors_` line of a folder lists its subfolders (and files beside them, without
# their endings), lowest first. A file must not use a higher floor: it must not include its headers, and must not name
# or declare a function that is defined there. Files beside the subfolders that the line does not name are above all
# floors.
#
# Prints for each folder with subfolders: includes and calls against the order, circles of subfolders, and the functions
# that receive a struct of the folder's `whole_` line. Through such a struct, a function reaches the folder's whole
# state, so at most as many functions as `most_whole_` says may receive such a struct.
set -eu
cd "$(dirname "$0")/.."
found=$(mktemp)
trap 'rm -f "$found"' EXIT
folders=
for folder in base wire schedule model planner store agent controller verify doctor tui cli; do
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
	only 'openssl' 'wire/'
	only '(ncurses|curses|term)\.h' 'tui/'
	only 'sqlite3' 'store/'
	only 'microhttpd' 'controller/monitor/'
	only '(cuda|cublas|cudnn)' 'model/cuda/'
	only '(oneapi/|dnnl|immintrin)' 'model/cpu/'
} >>"$found"

for folder in $folders; do
	find "$folder" \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) -not -path '*/tests/*' | sort |
		xargs awk -v folder="$folder" -v found="$found" \
			-v order="$(sed -n "s/^floors_$folder *:= *//p" Makefile)" \
			-v whole="$(sed -n "s/^whole_$folder *:= *//p" Makefile)" \
			-v most_whole="$(sed -n "s/^most_whole_$folder *:= *//p" Makefile)" '
		BEGIN {
			n = split(order, floor, " ")
			for (i = 1; i <= n; i++)
				level[floor[i]] = i
			gsub(/ +/, "|", whole)
		}
		# Returns the floor of a file: its subfolder, or the file itself if it is beside the subfolders.
		function floor_of(path) {
			sub("^" folder "/", "", path)
			if (path ~ /\//)
				sub(/\/.*/, "", path)
			else
				sub(/\.[a-z]+$/, "", path)
			return path
		}
		# Returns true if a file of floor a must not use floor b. Records that a uses b.
		function is_against(a, b) {
			if (a == b)
				return 0
			uses[a, b] = 1
			return n > 0 && (b in level ? level[b] : n + 1) > (a in level ? level[a] : n + 1)
		}
		function takes_whole(parameters) { return whole != "" && parameters ~ "struct (" whole ") \\*" }
		FNR == 1 {
			comment = 0
			here = floor_of(FILENAME)
			if (FILENAME ~ "^" folder "/.*/" && !(here in subfolder)) {
				subfolder[here] = 1
				n_subfolders++
				if (n > 0 && !(here in level))
					printf "Makefile: floors_%s does not name %s/%s\n", folder, folder, here >>found
			}
		}
		match($0, "^[ \t]*#[ \t]*include[ \t]*\"" folder "/[^\"]*\"") {
			path = $0
			gsub(/^[^"]*"|"[^"]*$/, "", path)
			if (is_against(here, floor_of(path))) {
				includes++
				printf "%s:%d: includes \"%s\", which is above it\n", FILENAME, FNR, path >>found
			}
			next
		}
		/^[ \t]*#/ { next }
		# Drops comments and strings.
		{
			text = $0
			gsub(/"([^"\\]|\\.)*"/, "", text)
			if (comment) {
				if (!sub(/^.*\*\//, "", text))
					next
				comment = 0
			}
			while (match(text, /\/\*([^*]|\*+[^*\/])*\*+\//))
				text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
			comment = sub(/\/\*.*/, "", text)
			sub(/\/\/.*/, "", text)
		}
		# The line may begin a function, whose parameters may continue on the next lines.
		text ~ /^[a-z][^;=]*\(/ {
			head = text
			match(text, /[A-Za-z_0-9]+\(/)
			name = substr(text, RSTART, RLENGTH - 1)
		}
		text !~ /^[a-z][^;=]*\(/ && head != "" && text !~ /^\{/ { head = head " " text }
		head != "" && head ~ /;[ \t]*$/ { head = "" } # this was a prototype
		/^\{/ && head != "" {
			if (head ~ /^static/)
				own[FILENAME, name] = 1
			else
				home[name] = here
			n_whole += takes_whole(head)
			head = ""
		}
		# Names of functions are among the words that are neither fields nor tags.
		{
			gsub(/(\.|->)[ \t]*[A-Za-z_0-9]+|(struct|enum|union)[ \t]+[A-Za-z_0-9]+/, " ", text)
			gsub(/[^A-Za-z_0-9]+/, " ", text)
			m = split(text, word, " ")
			for (j = 1; j <= m; j++)
				if (!((FILENAME, word[j]) in line_of)) {
					line_of[FILENAME, word[j]] = FNR
					used[++n_used] = FILENAME SUBSEP word[j]
				}
		}
		END {
			for (i = 1; i <= n_used; i++) {
				split(used[i], pair, SUBSEP)
				if (pair[2] in home && !(used[i] in own) && is_against(floor_of(pair[1]), home[pair[2]])) {
					calls++
					printf "%s:%d: names %s, which is defined above it, in %s\n", pair[1],
						line_of[used[i]], pair[2], home[pair[2]] >>found
				}
			}
			if (n_subfolders == 0)
				exit
			for (a in level)
				subfolder[a] = 1
			for (k in subfolder)
				for (a in subfolder)
					if ((a, k) in uses)
						for (b in subfolder)
							if ((k, b) in uses)
								uses[a, b] = 1
			for (a in subfolder) {
				if (a in circled || !((a, a) in uses))
					continue
				circles++
				for (b in subfolder)
					if ((a, b) in uses && (b, a) in uses) {
						circled[b] = 1
						in_circles++
					}
			}
			if (n > 0)
				printf "%-11s %d includes and %d calls against the order, ", folder "/", includes, calls
			else
				printf "%-11s no order; ", folder "/"
			printf "circles of subfolders: %d", circles
			if (circles > 0) {
				printf " (of %d)", in_circles
				printf "%s/: subfolders that use each other: %d\n", folder, in_circles >>found
			}
			if (whole != "") {
				gsub(/\|/, " or ", whole)
				printf ", %d functions receive struct %s", n_whole, whole
				if (n_whole > most_whole + 0)
					printf "%s/: %d functions receive struct %s (at most %d)\n", folder,
						n_whole, whole, most_whole >>found
			}
			printf "\n"
		}
	'
done

cat "$found"
[ ! -s "$found" ]
