#!/bin/bash
# Every verb has a manual page, and the shell completes its options. The pages are made from the help texts, so the two
# agree.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-console skippipe-model
deploy/manual.sh "$bin" "$dir/m" || die "the pages cannot be made"
for v in $("$bin/skippipe" --help | sed -n 's/^  \([a-z][a-z]*\)   *[a-z].*/\1/p'); do
	page=$dir/m/man1/skippipe-$v.1
	[ -s "$page" ] || die "no page for $v"
	head -n 1 "$page" | grep -q '^\.TH\|^\.\\"' || die "$v: not a manual page"
	grep -q "$v" "$dir/m/_skippipe" || die "$v: zsh does not know it"
done
. "$dir/m/skippipe.bash"
COMP_WORDS=(skippipe demo --itera) COMP_CWORD=2 COMPREPLY=()
_skippipe
[ "${COMPREPLY[*]}" = --iterations ] || die "demo --itera completes to ${COMPREPLY[*]}"
COMP_WORDS=(skippipe veri) COMP_CWORD=1
_skippipe
[ "${COMPREPLY[*]}" = verify ] || die "veri completes to ${COMPREPLY[*]}"

# completes WORDS REGEX: bash completes the words to a text that matches. Each call also types its own number behind the
# text, so that it cannot take the output of an earlier call for its own.
n=0
completes() {
	tm send-keys C-l "skippipe $1" Tab $((n += 1))
	see 10 "skippipe $2$n"
	tm send-keys C-u
}
terminal manual
mkdir "$dir/a folder" "$dir/verify"
tm -f /dev/null new-session -d -s manual -x 80 -y 20 "cd '$dir' && exec bash --norc"
tm send-keys '. m/skippipe.bash' Enter
completes veri 'verify '
completes 'eval a' 'eval a\\ folder/'
completes 'eval a\ fo' 'eval a\\ folder/'
completes 'eval "a fo' 'eval "a folder"?/'
echo "$(ls "$dir/m/man1" | wc -l) pages"
