#!/bin/sh
# Writes the screens of the golden tests and the table of keys into docs/console.md, between its
# markers: <!-- screen NAME SIZE --> or <!-- keys --> and <!-- end -->.
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
	/^<!-- keys -->$/ { while ((getline line < keys) > 0) print line; skip = 1 }
' docs/console.md >"$out"
cmp -s "$out" docs/console.md || cat "$out" >docs/console.md
