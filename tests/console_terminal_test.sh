#!/bin/bash
# The console runs on every kind of terminal, with every locale and size. However it ends, the terminal has its former
# settings.
. "$(dirname "$0")/lib.sh"
need skippipe-console
maker=${SKIPPIPE_BUILD:-$PWD/build}/tui/tests/view_test
[ -x "$maker" ] || skip "tui/tests/view_test is not built"
STREAM_KEEP=$dir/run.rec "$maker" >"$dir/maker.out" 2>&1 || die "no stream was made"

terminal console
case=start
tm -f /dev/null new-session -d -x 80 -y 24 "env PS1='ready> ' bash --norc" || skip "tmux cannot start here"
see 10 'ready>'
tm send-keys "stty -a >$dir/before" Enter

back() { # checks that the shell is back and no process of the console is left
	see 10 'status='
	tm resize-window -x 80 -y 24
	sleep 0.2
	rm -f "$dir/after"
	tm send-keys "clear; stty -a >$dir/after.new; mv $dir/after.new $dir/after" Enter
	local end=$((SECONDS + 10))
	until [ -s "$dir/after" ]; do
		[ $SECONDS -lt $end ] || die "the shell does not answer ($case)"
		sleep 0.05
	done
	diff <(sed 's/rows [0-9]*; columns [0-9]*//' "$dir/before") <(sed 's/rows [0-9]*; columns [0-9]*//' "$dir/after") >"$dir/stty" ||
		{ cat "$dir/stty"; die "the terminal's settings have changed ($case)"; }
	[ "$(tm display-message -p '#{alternate_on} #{cursor_flag}')" = '0 1' ] || die "the screen was not put back ($case)"
}
start() { # start ENVIRONMENT OPTIONS: starts the console with the recorded run
	tm send-keys "clear; env XDG_CONFIG_HOME=$dir/config $1 $bin/skippipe-console --play $dir/run.rec $2; s=\$?; printf '\r\nstatus=%s\r\n' \$s" Enter
}

for term in xterm-256color tmux-256color screen linux vt100; do
	infocmp "$term" >/dev/null 2>&1 || continue
	for locale in C C.UTF-8; do
		case="$term $locale"
		start "TERM=$term LC_ALL=$locale" ""
		see 5 'it +4[0-9]'
		see 5 'Pipeline'
		tm send-keys '?'
		see 5 'Help'
		tm send-keys q
		for key in 2 3 4 5 6 7 8; do tm send-keys $key; sleep 0.05; done
		see 5 'Journal'
		tm send-keys 1 q
		back
	done
done

# If this machine does not know the terminal, the console uses another type and says so.
for term in xterm-nonsense xterm-kitty xterm-ghostty foot; do
	case="unknown $term"
	start "TERM=$term LC_ALL=C.UTF-8" ""
	see 5 'Pipeline'
	infocmp "$term" >/dev/null 2>&1 || see 2 "TERM=$term is unknown on this machine: xterm-256color is used"
	tm send-keys q
	back
done

# No report of the terminal acts as a key: focus, the cursor, F1 in pieces, a click that is cut off. Afterwards keys act
# again.
case=reports
start "TERM=xterm-256color LC_ALL=C.UTF-8 ESCDELAY=50" ""
see 5 'Pipeline'
for bytes in '1b 5b 49' '1b 5b 32 34 3b 38 30 52' '1b 4f 50' '1b 5b 4d 20'; do
	for byte in $bytes; do tm send-keys -H "$byte"; sleep 0.2; done
	sleep 0.2
	screen | grep -qE 'not sent|Recover|Inject|Failure' && { screen; die "a report acted: $bytes"; }
done
see 2 'Esc ends the wait'
tm send-keys Escape
# On a busy machine the console may read Escape and the key together and take them for one key with Alt. Then the test
# repeats them.
end=$((SECONDS + 10))
until screen | grep -q Nodes; do
	[ $SECONDS -lt $end ] || die "no key acts after the reports"
	tm send-keys 2
	sleep 0.5
done
tm send-keys -H 1b 5b 4d
tm send-keys C-c
back

# While the console is stopped, the shell gets no clicks. When it continues, the console gets them again.
case=stopped
start "TERM=tmux-256color LC_ALL=C.UTF-8" ""
see 5 'Pipeline'
mouse() { # mouse 0|1: waits until tmux says that clicks are off (0) or on (1)
	local end=$((SECONDS + 5))
	until [ "$(tm display-message -p '#{mouse_any_flag}')" = "$1" ]; do
		[ $SECONDS -lt $end ] || die "the mouse is not $1 ($case)"
		sleep 0.1
	done
}
tm send-keys m
mouse 1
tm send-keys C-z
see 5 'Stopped|status='
mouse 0
tm send-keys fg Enter
see 5 'Pipeline'
mouse 1
tm send-keys q
see 5 'ready>'
mouse 0

# The size changes while the console runs.
case=sizes
start "TERM=tmux-256color LC_ALL=C.UTF-8" "--fps 60"
see 5 'Pipeline'
for size in 1x1 20x5 300x90 2x40 200x2 80x24 160x48 79x23 40x10; do
	tm resize-window -x "${size%x*}" -y "${size#*x}"
	tm send-keys Tab s Escape
	sleep 0.1
done
for _ in $(seq 20); do tm resize-window -x $((RANDOM % 200 + 1)) -y $((RANDOM % 60 + 1)); done
tm resize-window -x 120 -y 36
see 5 'Pipeline'
tm send-keys q
back

# Ctrl-S does not stop the screen. A signal ends the console even while the terminal takes no output.
case=flow
start "TERM=tmux-256color LC_ALL=C.UTF-8" "--fps 60 --speed 20"
see 5 'Pipeline'
tm send-keys C-s 2
see 5 'Nodes'
pid=$(pgrep -f -x "$bin/skippipe-console --play $dir/run.rec --fps 60 --speed 20") || die "no console runs"
server=$(tm display-message -p '#{pid}')
tm send-keys 4
kill -STOP "$server"
sleep 2
kill -TERM "$pid"
for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
ended=$(kill -0 "$pid" 2>/dev/null || echo yes)
kill -CONT "$server"
[ "$ended" ] || die "a console that waits for its terminal cannot be ended"
back

# A copied text is in the terminal's clipboard and in the file, with exactly the same bytes.
case=copy
tm set -s set-clipboard on
start "TERM=tmux-256color LC_ALL=C.UTF-8 XDG_CACHE_HOME=$dir/cache" ""
see 5 'Pipeline'
tm send-keys y
see 5 "copied to the terminal's clipboard and"
tm show-buffer >"$dir/clipboard" || die "nothing is on the clipboard"
grep -q 'Pipeline' "$dir/clipboard" || die "the view is not on the clipboard"
cmp "$dir/clipboard" "$dir/cache/skippipe/copied.txt" || die "clipboard and file differ"
tm send-keys q
back
# If no folder can be written, the clipboard still gets the text.
start "TERM=tmux-256color LC_ALL=C.UTF-8 XDG_CACHE_HOME=/proc" ""
see 5 'Pipeline'
tm send-keys y
see 5 "copied to the terminal's clipboard only: /proc"
tm send-keys q
back

# Each of these signals ends the console.
for signal in TERM INT HUP SEGV ABRT BUS FPE ILL QUIT; do
	case="signal $signal"
	start "TERM=tmux-256color LC_ALL=C.UTF-8" ""
	see 5 'Pipeline'
	pid=$(pgrep -f -x "$bin/skippipe-console --play $dir/run.rec ?") || die "no console runs"
	kill -"$signal" "$pid"
	back
done

# On a terminal without cursor movement or colours, or without a terminal, the console prints lines.
case=dumb
start "TERM=dumb" "" && see 5 'iteration 40: loss'
tm send-keys C-c
see 5 'status=0'
timeout 2 "$bin/skippipe-console" --play "$dir/run.rec" --speed 1000 >"$dir/plain.out" 2>"$dir/plain.err" </dev/null
grep -q '^2[0-9-]*T[0-9:]*\.[0-9]*Z iteration 41: loss' "$dir/plain.out" || die "no lines where there is no terminal"
grep -q $'\033' "$dir/plain.out" && die "an escape sequence among the plain lines"
case=NO_COLOR
start "TERM=tmux-256color LC_ALL=C.UTF-8 NO_COLOR=1" "" && see 5 'Pipeline'
tm capture-pane -p -e | grep -qE $'\033\\[[0-9;]*(3[0-7]|4[0-7]|38|48)[;m]' && die "colours in spite of NO_COLOR"
tm send-keys q
back

expect 2 '--nonsense: unknown option' "$bin/skippipe-console" --nonsense
expect 2 'is needed' "$bin/skippipe-console"
# Without a home folder that can be written, the console asks for --key. It leaves no key in its working folder.
for home in -u\ HOME HOME= HOME=here HOME=/proc "HOME=/ XDG_CONFIG_HOME=/proc/"; do
	# shellcheck disable=SC2086 # words of env
	expect 1 "so give --key FILE: (neither XDG_CONFIG_HOME nor HOME is an absolute path|/proc/[.a-z]*: )" \
		env -C "$dir" -u XDG_CONFIG_HOME $home "$bin/skippipe-console" --connect "ipc://$dir/nobody" \
		--controller-key 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
	[ ! -e "$dir/here" ] && [ ! -e "$dir/.config" ] || die "a key in the working folder ($home)"
done
expect 1 'No such file' "$bin/skippipe-console" --play "$dir/nothing.rec"
expect 2 'not a recording' "$bin/skippipe-console" --play "$0"
expect 2 'not a recording' "$bin/skippipe-console" --play "$bin/skippipe-console"
sed 's/sp/sq/' "$dir/run.rec" >"$dir/other.rec"
expect 2 'other.rec: not a recording' "$bin/skippipe-console" --play "$dir/other.rec"
{ cat "$dir/run.rec" && printf '\377\377\377\377 and more'; } >"$dir/damaged.rec"
expect 2 "damaged at byte $(stat -c %s "$dir/run.rec"):" "$bin/skippipe-console" --play "$dir/damaged.rec"
echo mine >"$dir/letter"
expect 1 'letter: exists' "$bin/skippipe-console" --play "$dir/run.rec" --record "$dir/letter"
[ "$(cat "$dir/letter")" = mine ] || die "--record replaced a file"
# If the disk of a recording is full, the console says so, even without a screen.
(trap '' XFSZ; ulimit -f 4; timeout 3 "$bin/skippipe-console" --play "$dir/run.rec" --speed 1000 --record "$dir/cut.rec" \
	</dev/null 2>&1 >/dev/null | cat >"$dir/cut.err")
grep -q 'cut.rec: the end is missing' "$dir/cut.err" || die "a recording that is cut is not reported"
expect 1 'no theme "nothing"' "$bin/skippipe-console" --play "$dir/run.rec" --theme nothing
expect 2 'braille, block or ascii' "$bin/skippipe-console" --play "$dir/run.rec" --graph crayon
echo "every terminal, locale, size and signal leaves the terminal as it was"
