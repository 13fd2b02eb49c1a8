#!/bin/sh
# Copies golden screens and the tables of keys and injected failures into docs/console.md, between
# its markers: <!-- screen NAME SIZE -->, <!-- keys --> or <!-- faults -->, and <!-- end -->.
set -eu
cd "$(dirname "$0")/../.."
keys=$(mktemp)
out=$(mktemp)
trap 'rm -f "$keys" "$out"' EXIT
"${1:-build}/bin/skippipe-console" --keys >"$keys"
awk -v keys="$keys" '
	/^<!-- end -->$/ { skip = 0 }
	!skip { print }
	/^<!-- screen / {
		file = "tui/tests/golden/" $3 "-" $4 ".txt"
		print "```"
		while ((rc = (getline line < file)) > 0) print line
		if (rc < 0) { print "screens: no " file > "/dev/stderr"; exit 1 }
		close(file)
		print "```"
		skip = 1
	}
	/^<!-- (keys|faults) -->$/ {
		shown = "keys"
		while ((getline line < keys) > 0) {
			if (line == "") shown = "faults"
			else if ($2 == shown) print line
		}
		close(keys)
		skip = 1
	}
' docs/console.md >"$out"
cmp -s "$out" docs/console.md || cat "$out" >docs/console.md
