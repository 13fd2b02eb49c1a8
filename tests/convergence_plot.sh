#!/bin/bash
# convergence_plot.sh NAME CURVE SECONDS [NAME CURVE SECONDS]...: draws validation losses over predicted time as one
# SVG. CURVE is the output of skippipe train --format jsonl. SECONDS is the duration of an iteration, or A@F,B: A
# seconds in the first share F of the iterations, then B seconds.
set -eu
while [ $# -gt 0 ]; do
	sed -n 's/.*"n":\([0-9]*\).*"validation":\([0-9.]*\).*/\1 \2/p' "$2" | awk -v name="$1" -v seconds="$3" '
		{ n[NR] = $1; loss[NR] = $2 }
		END {
			first = split(seconds, part, /[@,]/) == 3 ? part[2] * n[NR] : 0
			for (i = 1; i <= NR; i++) {
				slow = n[i] > first ? n[i] - first : 0
				print name, ((n[i] - slow) * part[1] + slow * part[first ? 3 : 1]) / 3600, loss[i]
			}
		}'
	shift 3
done | awk '
BEGIN {
	width = 640; height = 400; left = 56; right = 130; top = 16; bottom = 44
	split("#1b6ca8 #2a9d5c #d9822b #b83280 #7a7a7a #8c6d31 #c0392b #111111", colour, " ")
}
{
	if (!($1 in seen)) { seen[$1] = ++runs; name[runs] = $1 }
	k = seen[$1]; n[k]++; x[k, n[k]] = $2; y[k, n[k]] = $3
	if ($2 > most) most = $2
	if ($2 > 0 && $3 > high) high = $3
	if (low == "" || $3 < low) low = $3
}
function px(v) { return left + v / most * (width - left - right) }
function py(v) { if (v > high) v = high; return top + (high - v) / (high - low) * (height - top - bottom) }
END {
	if (high > 1.5 * low) high = 1.5 * low # otherwise the first losses would flatten all curves
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n", width, height
	printf "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
	for (i = 0; i <= 4; i++) {
		v = low + (high - low) * i / 4
		printf "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.2f</text>\n", left, py(v), width - right, py(v), left - 6, py(v) + 4, v
		printf "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.1f</text>\n", px(most * i / 4), height - bottom + 18, most * i / 4
	}
	printf "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">predicted hours</text>\n", (left + width - right) / 2, height - 8
	printf "<text x=\"14\" y=\"%d\" transform=\"rotate(-90 14 %d)\" text-anchor=\"middle\">validation loss (nats a byte)</text>\n", height / 2, height / 2
	for (k = 1; k <= runs; k++) {
		printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", colour[(k - 1) % 8 + 1]
		for (i = 1; i <= n[k]; i++) printf "%.1f,%.1f ", px(x[k, i]), py(y[k, i])
		printf "\"/>\n<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", width - right + 8, top + 16 * k, colour[(k - 1) % 8 + 1], name[k]
	}
	print "</svg>"
}'
