#!/bin/sh
# Makes manual pages and shell completion from the programs' --help, so that they cannot differ from
# the programs: deploy/manual.sh BIN OUT writes OUT/man1/*.1, OUT/skippipe.bash and OUT/_skippipe.
set -eu
bin=$1/skippipe
out=$2
mkdir -p "$out/man1"
verbs=$("$bin" --help | sed -n 's/^  \([a-z][a-z]*\)   *[a-z].*/\1/p')
summary() { "$bin" --help | sed -n "s/^  $1  *\([a-z].*\)/\1/p"; }
escape() { sed -e 's/\\/\\e/g' -e "s/^[.']/\\\\\&&/" -e 's/-/\\-/g'; }

page() { # page NAME SUMMARY <help
	echo ".TH \"$(echo "$1" | tr a-z A-Z)\" 1 \"\" \"skippipe $("$bin" --version | cut -d' ' -f2)\" \"skippipe\""
	printf '.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n' "$1" "$2"
	escape
	printf '.fi\n.SH SEE ALSO\n.BR skippipe (1)\n'
	for v in $verbs; do [ "skippipe-$v" = "$1" ] || printf '.BR skippipe-%s (1)\n' "$v"; done
}

"$bin" --help | page skippipe "train models on unreliable nodes that are far apart" >"$out/man1/skippipe.1"
for v in $verbs; do
	if [ "$v" = console ]; then
		"$bin" console --manual >"$out/man1/skippipe-console.1"
	else
		"$bin" "$v" --help | page "skippipe-$v" "$(summary "$v")" >"$out/man1/skippipe-$v.1"
	fi
done

options() { "$bin" "$1" --help | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u | tr '\n' ' '; }
{
	echo '# bash completion for skippipe'
	echo '_skippipe() {'
	echo '	local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]:-} options='
	echo '	if [ "$COMP_CWORD" = 1 ]; then'
	echo "		COMPREPLY=(\$(compgen -W '$(echo $verbs) help --help --version' -- \"\$word\"))"
	echo '		return'
	echo '	fi'
	echo '	case $verb in'
	for v in $verbs; do echo "	$v) options='$(options "$v")' ;;"; done
	echo '	esac'
	echo '	case $word in'
	echo '	-*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;'
	echo '	esac'
	echo '}'
	echo 'complete -o default -F _skippipe skippipe'
} >"$out/skippipe.bash"
{
	echo '#compdef skippipe'
	echo '_skippipe() {'
	echo '	local -a verbs'
	echo '	verbs=('
	for v in $verbs; do echo "		'$v:$(summary "$v")'"; done
	echo '	)'
	echo '	if (( CURRENT == 2 )); then _describe verb verbs; return; fi'
	echo '	case $words[2] in'
	for v in $verbs; do echo "	$v) compadd -- $(options "$v") ;;"; done
	echo '	esac'
	echo '	_files'
	echo '}'
	echo '_skippipe "$@"'
} >"$out/_skippipe"
