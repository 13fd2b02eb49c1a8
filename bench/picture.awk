# Makes one animated SVG from captures of a terminal (tmux capture-pane -ep), one file for each frame.
# A row that is equal in several consecutive frames is drawn once for all of them.
function colour256(n,	level, r, g, b) {
	if (n < 16)
		return palette[n]
	if (n >= 232)
		return sprintf("#%02x%02x%02x", 8 + 10 * (n - 232), 8 + 10 * (n - 232), 8 + 10 * (n - 232))
	n -= 16
	split("0 95 135 175 215 255", level, " ")
	return sprintf("#%02x%02x%02x", level[int(n / 36) + 1], level[int(n / 6) % 6 + 1], level[n % 6 + 1])
}
function set_style(codes,	c, n, i) {
	n = split(codes, c, ";")
	if (n == 0)
		reset()
	for (i = 1; i <= n; i++) {
		if (c[i] + 0 == 0) reset()
		else if (c[i] == 1) bold = 1
		else if (c[i] == 2) dim = 1
		else if (c[i] == 7) inverse = 1
		else if (c[i] == 22) bold = dim = 0
		else if (c[i] == 27) inverse = 0
		else if (c[i] >= 30 && c[i] <= 37) fg = palette[c[i] - 30]
		else if (c[i] >= 90 && c[i] <= 97) fg = palette[c[i] - 82]
		else if (c[i] >= 40 && c[i] <= 47) bg = palette[c[i] - 40]
		else if (c[i] == 39) fg = ""
		else if (c[i] == 49) bg = ""
		else if ((c[i] == 38 || c[i] == 48) && c[i + 1] == 5) {
			if (c[i] == 38) fg = colour256(c[i + 2] + 0)
			else bg = colour256(c[i + 2] + 0)
			i += 2
		} else if ((c[i] == 38 || c[i] == 48) && c[i + 1] == 2) {
			shade = sprintf("#%02x%02x%02x", c[i + 2], c[i + 3], c[i + 4])
			if (c[i] == 38) fg = shade
			else bg = shade
			i += 4
		}
	}
}
function reset() { fg = bg = ""; bold = dim = inverse = 0 }
function width(s) { gsub(/[\200-\277]/, "", s); return length(s) }
function escaped(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); return s }
function class_of(ink) {
	if (!(ink in class)) {
		class[ink] = "c" ++classes
		rules = rules "." class[ink] "{fill:" ink "}"
	}
	return class[ink]
}
# Adds text in the current style. Text of one style becomes one <tspan>, backgrounds are drawn below it,
# and spaces are kept.
function put(s,	ink, paper, style) {
	if (s == "")
		return
	ink = fg == "" ? INK : fg
	paper = bg
	if (inverse) { paper = ink; ink = bg == "" ? PAPER : bg }
	if (paper != "")
		boxes = boxes sprintf("<path class='%s' d='M%g %dh%gv%dh-%gz'/>", class_of(paper), column * W, row * H - H + 4, width(s) * W, H, width(s) * W)
	if (s ~ /^ *$/)
		style = last_style
	else
		style = (ink == INK ? "" : class_of(ink)) (bold ? " b" : "") (dim ? " d" : "")
	if (style != last_style) {
		flush_run()
		last_style = style
	}
	run = run s
	column += width(s)
}
function flush_run() {
	if (run != "")
		spans = spans (last_style == "" ? escaped(run) : "<tspan class='" last_style "'>" escaped(run) "</tspan>")
	run = ""
}
BEGIN {
	W = 7.83; H = 16; step = 1; INK = "#d0d0d0"; PAPER = "#101418"
	split("#1c1c1c #e06c75 #98c379 #e5c07b #61afef #c678dd #56b6c2 #d0d0d0 #7f848e #ff7b86 #b5e890 #ffd98a #82c7ff #e2a0f5 #7ddfe9 #ffffff", p, " ")
	for (i = 1; i <= 16; i++)
		palette[i - 1] = p[i]
}
FNR == 1 { frames++; reset() }
{
	row = FNR; column = 0; spans = boxes = run = last_style = ""; rest = $0
	sub(/[ \t]+$/, "", rest)
	while (match(rest, /\033\[[0-9;]*m|\033[()].|[\016\017]/)) {
		code = substr(rest, RSTART, RLENGTH)
		put(substr(rest, 1, RSTART - 1))
		rest = substr(rest, RSTART + RLENGTH)
		if (code ~ /m$/)
			set_style(substr(code, 3, length(code) - 3))
	}
	put(rest)
	flush_run()
	drawn[frames, row] = boxes (spans == "" ? "" : sprintf("<text y='%d' textLength='%g'>%s</text>", row * H, column * W, spans))
	if (row > rows) rows = row
	if (column > columns) columns = column
}
END {
	total = frames * step
	printf("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='DejaVu Sans Mono,Menlo,Consolas,monospace' font-size='13' fill='%s' xml:space='preserve'>\n", columns * W + 8, rows * H + 12, INK)
	printf("<title>skippipe console: an embedded cluster on an emulated network; a node is killed</title>\n")
	printf("<rect width='100%%' height='100%%' fill='#101418'/>\n<style>.b{font-weight:bold}.d{opacity:.6}.r{visibility:hidden;animation-duration:%ss;animation-iteration-count:infinite;animation-timing-function:step-end}", total)
	for (r = 1; r <= rows; r++)
		for (f = 1; f <= frames; f++) {
			for (g = f; g < frames && drawn[g + 1, r] == drawn[f, r]; g++) ;
			if (f == 1 && g == frames)
				body = body drawn[f, r] "\n"
			else if (drawn[f, r] != "") {
				key = f "-" g
				if (!(key in timed)) {
					timed[key] = ++names
					from = 100 * (f - 1) / frames
					to = 100 * g / frames
					printf("@keyframes k%d{0%%{visibility:%s}%s%s}.k%d{animation-name:k%d}", names, f == 1 ? "visible" : "hidden", f > 1 ? sprintf("%.3f%%{visibility:visible}", from) : "", g < frames ? sprintf("%.3f%%{visibility:hidden}", to) : "", names, names)
				}
				body = body sprintf("<g class='r k%d'>%s</g>\n", timed[key], drawn[f, r])
			}
			f = g
		}
	printf("%s</style>\n<g transform='translate(4,0)'>\n%s</g>\n</svg>\n", rules, body)
}
