#!/bin/bash
# The console as a moving picture, of a run that this makes:
#
#     bench/picture.sh OUT.svg [BUILD [SECONDS]]
#
# An embedded cluster of 20 agents on an emulated network, in tmux at 100x30. A node is killed in the
# fifth iteration, views are changed meanwhile, the screen is captured each half second, and every
# capture that differs from the one before is a frame of an animated SVG (CSS alone, no script).
set -eu
out=$1 build=${2:-build} seconds=${3:-60}
dir=$(mktemp -d)
socket=skippipe-picture-$$
trap 'tmux -L $socket kill-server 2>/dev/null; rm -rf "$dir"' EXIT
command -v tmux >/dev/null || { echo "picture: no tmux" >&2; exit 77; }
export LC_ALL=C.UTF-8
unset TMUX
tmux -u -L "$socket" -f /dev/null new-session -d -x 100 -y 30 \
	"COLORTERM=truecolor '$build/bin/skippipe' demo --run-dir '$dir/run' --at 5:kill:9"
tmux -u -L "$socket" set -g status off
frame=0
begun=0
for ((tick = 0; tick < 600; tick++)); do
	sleep 0.5
	tmux -u -L "$socket" capture-pane -ep >"$dir/now" 2>/dev/null || break
	[ $begun = 1 ] || grep -q ' it [2-9]' "$dir/now" || continue
	[ $begun = 1 ] || { begun=1 first=$tick; }
	case $((tick - first)) in
	44) key=2 ;; 54) key=4 ;; 66) key=1 ;; $((2 * seconds))) break ;; *) key= ;;
	esac
	[ -z "$key" ] || tmux -u -L "$socket" send-keys "$key"
	cmp -s "$dir/now" "$dir/last" && continue
	cp "$dir/now" "$dir/last"
	cp "$dir/now" "$dir/frame-$(printf %04d $frame)"
	frame=$((frame + 1))
done
[ $frame -gt 1 ] || { cat "$dir/now" >&2; echo "picture: nothing was seen" >&2; exit 1; }
awk -f "$(dirname "$0")/picture.awk" "$dir"/frame-* >"$out"
echo "$out: $frame frames, $(wc -c <"$out") bytes"
