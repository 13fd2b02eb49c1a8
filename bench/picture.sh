#!/bin/bash
# Makes an animated picture of the console from a recorded run:
#
#     bench/picture.sh OUT.svg [RUN-DIR]      BUILD=build, SECONDS_SHOWN=40
#
# Without a run the script records one: an embedded cluster of 20 agents on an emulated network, one
# of which is killed before the fifth iteration. The run is replayed to a console in tmux at 80x24
# from the fourth iteration on, and the script changes the views. It captures the terminal every
# second and makes each capture a frame of an animated SVG (bench/picture.awk, CSS without scripts).
set -eu
out=$1 run=${2:-} build=${BUILD:-build} shown=${SECONDS_SHOWN:-40}
here=$(dirname "$0")
dir=$(mktemp -d)
socket=skippipe-picture-$$
server=
trap 'tmux -L $socket kill-server 2>/dev/null; [ -z "$server" ] || kill $server 2>/dev/null; rm -rf "$dir"' EXIT
command -v tmux >/dev/null || { echo "picture: no tmux" >&2; exit 77; }
export LC_ALL=C.UTF-8
unset TMUX
if [ -z "$run" ]; then
	run=$dir/run
	"$build/bin/skippipe" demo --headless --run-dir "$run" --iterations 16 --at 5:kill:9 >"$dir/demo.out"
fi

controller=$("$build/bin/skippipe" keygen "$dir/controller.key")
console=$("$build/bin/skippipe" keygen "$dir/console.key")
"$build/bin/skippipe" admit "$dir/list" "$console" --role console --name operator
"$build/bin/skippipe" controller --replay "$run" --listen "ipc://$dir/at" --key "$dir/controller.key" \
	--admitted "$dir/list" >"$dir/serve.out" 2>&1 &
server=$!
mux() { tmux -u -L "$socket" "$@"; }
mux -f /dev/null new-session -d -x 80 -y 24 "env XDG_CONFIG_HOME=$dir TERM=tmux-256color \
	$build/bin/skippipe-console --connect ipc://$dir/at --controller-key $controller --key $dir/console.key"
mux set -g status off
capture() { mux capture-pane -ep >"$dir/now"; sed 's/\x1b\[[0-9;]*m//g' "$dir/now" >"$dir/plain"; }
for ((i = 0; i < 300; i++)); do
	sleep 0.2
	capture
	! grep -qE ' it ([4-9]|[1-9][0-9])/' "$dir/plain" || break
	[ $((i % 5)) = 4 ] && mux send-keys '}' # moves the console to the next commit
done
mux send-keys ' '
for ((frame = 0; frame < shown; frame++)); do
	case $((100 * frame / shown)) in
	55) mux send-keys 2 ;; 70) mux send-keys 4 ;; 85) mux send-keys 1 ;;
	esac
	sleep 1
	capture
	cp "$dir/now" "$dir/frame-$(printf %03d $frame)"
done
awk -f "$here/picture.awk" "$dir"/frame-* >"$out"
echo "$out: $frame frames, $(wc -c <"$out") bytes"
