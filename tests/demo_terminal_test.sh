#!/bin/bash
# The demo on a terminal. It starts the console soon and shows the run. However the demo ends, the terminal has its
# former settings and no process is left.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-console
terminal test

# All processes share one core, so that their order varies less.
tm -f /dev/null new-session -d -x 80 -y 24 "taskset -c 0 env PS1='ready> ' XDG_RUNTIME_DIR= bash --norc" || skip "tmux cannot start here"
see 10 'ready>'

# A wrong name of a theme is reported before any process starts.
tm send-keys "clear; $bin/skippipe demo --theme nothing --run-dir $dir/run-none; s=\$?; printf '\r\nstatus=%s\r\n' \$s" Enter
see 10 'status=1'
screen | grep -q 'no theme "nothing"' || die "the demo does not say what is wrong"
[ ! -e "$dir/run-none" ] || die "a run was begun"

for end in key signal kill-console; do
	run=$dir/run-$end
	tm send-keys "clear; stty -a >$dir/before; $bin/skippipe demo --agents 8 --time-scale 0 --run-dir $run" Enter
	see 30 'it +[0-9]+ .*nodes 8/8'
	demo=$(pgrep -f -x "$bin/skippipe demo .*--run-dir $run" | head -n 1)
	# Ctrl-Z gives the shell its screen back, with the prompt. fg brings the console back, even after bg.
	for back in fg fg "bg; sleep 0.5; fg"; do
		tm send-keys C-z
		see 10 '^ready>$'
		[ "$(tm display-message -p '#{alternate_on} #{cursor_flag}')" = '0 1' ] || die "the shell has no screen after Ctrl-Z"
		tm send-keys "$back; s=\$?; printf '\r\nstatus=%s\r\n' \$s" Enter
		see 10 'it +[0-9]+ .*nodes 8/8'
		[ "$(tm display-message -p '#{alternate_on}')" = 1 ] || die "fg does not bring the screen back"
	done
	# If another program stops the process of the demo, the console stops too.
	kill -TSTP "$demo"
	see 10 '^ready>$'
	[ "$(tm display-message -p '#{alternate_on}')" = 0 ] || die "the shell has no screen after SIGTSTP"
	tm send-keys "fg; s=\$?; printf '\r\nstatus=%s\r\n' \$s" Enter
	see 10 'it +[0-9]+ .*nodes 8/8'
	case $end in
	key)
		tm send-keys q
		see 5 'ends the run'
		tm send-keys Right
		sleep 0.3
		tm send-keys Enter ;;
	signal) kill -TERM "$demo" ;;
	kill-console) kill -KILL "$(pgrep -P "$demo" -f skippipe-console)" ;;
	esac
	see 20 'status=0'
	tm send-keys "stty -a >$dir/after" Enter
	sleep 0.5
	cmp -s "$dir/before" "$dir/after" || { diff "$dir/before" "$dir/after"; die "the terminal has changed ($end)"; }
	[ "$(tm display-message -p '#{alternate_on} #{cursor_flag}')" = '0 1' ] || die "the screen was not put back ($end)"
	check_gone "$run"
	kill -0 "$demo" 2>/dev/null && die "the demo is left ($end)"
done
echo "key, signal and a killed console leave nothing behind"
