#!/bin/sh
# Draws docs/measured.svg, the bars in README.md, from the tables of docs/performance.md: docs/measured.sh >docs/measured.svg
# The picture has no figures of its own. The script fails if a row is missing.
set -eu
cd "$(dirname "$0")"
awk -F '|' '
	function bar(name, who, seconds) {
		n++
		label[n] = name; arm[n] = who; value[n] = seconds + 0
		if (value[n] > longest) longest = value[n]
	}
	/^\| \| shipped20 \|/ { for (i = 3; i < NF; i++) { gsub(/ /, "", $i); cluster[i] = " " $i } }
	/^\| free assignment, overlapping: dtfm; skippipe/ {
		for (i = 3; i < NF; i++) {
			split($i, of, ";")
			bar("planned:" cluster[i], "DT-FM", of[1])
			bar("", "skippipe", of[2])
		}
	}
	/^\| test bed/ {
		bar("test network, 1.5B", "DT-FM", $3)
		bar("", "skippipe", $4)
		bar("", "DT-FM, 6 bits", $5)
		bar("", "skippipe, 6 bits", $6)
	}
	END {
		if (n != 12) { print "docs/measured.sh: docs/performance.md lacks a row" >"/dev/stderr"; exit 1 }
		height = 30
		for (i = 1; i <= n; i++) height += label[i] != "" ? 28 : 19
		printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n", height
		print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
		y = 12
		for (i = 1; i <= n; i++) {
			if (label[i] != "") { y += 9; printf "<text x=\"10\" y=\"%d\" fill=\"#222\">%s</text>\n", y + 12, label[i] }
			length_px = value[i] / longest * 330
			printf "<text x=\"265\" y=\"%d\" fill=\"#444\" text-anchor=\"end\">%s</text>\n", y + 12, arm[i]
			printf "<rect x=\"272\" y=\"%d\" width=\"%.1f\" height=\"15\" fill=\"%s\"/>\n", y, length_px, arm[i] ~ /^DT/ ? "#b0b7bf" : "#1b6ca8"
			printf "<text x=\"%.1f\" y=\"%d\" fill=\"#222\">%.1f s</text>\n", 278 + length_px, y + 12, value[i]
			y += 19
		}
		print "</svg>"
	}
' performance.md
