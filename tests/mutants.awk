# Lists small changes to C files: awk -f tests/mutants.awk FILE...
# Each line has the file, the line number, the kind of change and the changed line, separated by tabs. Changes are made in
# the bodies of functions only, and not in lines with strings, comments or assertions.
function put(what, line) {
	gsub(/[ \t]+/, " ", line)
	sub(/^ /, "", line)
	printf "%s\t%d\t%s\t%s\n", FILENAME, FNR, what, line
}
# Changes each place where the regular expression matches, one at a time.
function offer(regex, becomes,    start, rest) {
	start = ""
	rest = $0
	while (match(rest, regex)) {
		put(regex_name(substr(rest, RSTART, RLENGTH)) " to " regex_name(becomes),
		    start substr(rest, 1, RSTART - 1) becomes substr(rest, RSTART + RLENGTH))
		start = start substr(rest, 1, RSTART + RLENGTH - 2)
		rest = substr(rest, RSTART + RLENGTH - 1)
	}
}
function regex_name(text) { gsub(/^ | $/, "", text); return text }
# Negates a condition that ends on its line.
function negate(    open, i, c, depth) {
	if (!match($0, /(^|[^a-z_])(if|while) \(/))
		return
	open = RSTART + RLENGTH - 1
	for (i = open; i <= length($0); i++) {
		c = substr($0, i, 1)
		depth += (c == "(") - (c == ")")
		if (depth == 0) {
			put("negated", substr($0, 1, open) "!(" substr($0, open + 1, i - open) substr($0, i, length($0) - i + 1))
			return
		}
	}
}
# Ends a counted loop one step earlier. Changing < to <= ends it one step later.
function end_earlier(    at) {
	if ($0 ~ /for \(/ && match($0, /; [a-z_]+ <=? /)) {
		at = RSTART + 2
		put("a turn fewer", substr($0, 1, at - 1) "1 + " substr($0, at))
	}
}
FNR == 1 { inside = comment = 0 }
/^\{/ { inside = 1; next }
/^\}/ { inside = 0 }
/\/\*/ && !/\*\// { comment = 1 }
comment { if (/\*\//) comment = 0; next }
!inside || /"/ || /'/ || /\/\*/ || /^[ \t]*(#|case |assert|static )/ { next }
{
	offer(" < ", " <= "); offer(" <= ", " < "); offer(" > ", " >= "); offer(" >= ", " > ")
	offer(" == ", " != "); offer(" != ", " == ")
	offer(" && ", " || "); offer(" [|][|] ", " && ")
	offer(" [+] ", " - "); offer(" - ", " + "); offer(" [+]= ", " -= "); offer(" -= ", " += ")
	offer(" 1;", " 2;"); offer(" 1[)]", " 2)")
	offer("return true;", "return false;"); offer("return false;", "return true;")
	offer("return -E[A-Z]+;", "return 0;"); offer("return rc;", "return 0;"); offer("return 0;", "return -1;")
	offer(" = true;", " = false;"); offer(" = false;", " = true;"); offer(" = 0;", " = 1;")
	negate()
	end_earlier()
}
