#!/bin/bash
# Draws docs/console.svg, the animation in README.md: docs/picture.sh [RUN-DIR]
# The script replays a recorded run to a console in tmux and saves a picture of one view after another (:export svg).
# CSS shows the pictures in turn. Without RUN-DIR the script first records a demo of fifteen iterations, kills a node in
# it and skips more stages.
. "$(dirname "$0")/../tests/lib.sh"
need skippipe skippipe-console skippipe-controller skippipe-agent skippipe-key tmux
frame_s=1.5 columns=120 rows=36
views=(1 1 1 9 9 9 9 C 9 4 5 2 6 8) # the console's key for each frame
socket=skippipe-picture-$$
undo+=("tmux -L $socket kill-server")
tm() { tmux -u -L "$socket" "$@"; }
see() { # see SECONDS REGEX
	local end=$((SECONDS + $1))
	until tm capture-pane -p | grep -qE -- "$2"; do
		[ $SECONDS -lt $end ] || { tm capture-pane -p; die "no \"$2\" on the screen within $1 s"; }
		sleep 0.1
	done
}
unset TMUX

run=${1:-$dir/run}
[ $# -gt 0 ] || "$bin/skippipe" demo --headless --iterations 15 --at 6:kill:9 --at 10:skip:3 --run-dir "$run" \
	>"$dir/demo.out" 2>"$dir/demo.err" || die "no run was recorded"
controller=$("$bin/skippipe" keygen "$dir/controller.key") && console=$("$bin/skippipe" keygen "$dir/console.key") &&
	"$bin/skippipe" admit "$dir/list" "$console" --role console --name operator || die "no keys"
"$bin/skippipe" controller --replay "$run" --listen "ipc://$dir/at" --key "$dir/controller.key" --admitted "$dir/list" \
	>"$dir/serve.out" 2>"$dir/serve.err" &
started+=($!)
mkdir "$dir/frames"
tm -f /dev/null new-session -d -x $columns -y $rows -c "$dir/frames" \
	"env XDG_CONFIG_HOME=$dir/config LC_ALL=C.UTF-8 COLORTERM=truecolor TERM=xterm-256color $bin/skippipe-console --graph block --connect ipc://$dir/at --controller-key $controller --key $dir/console.key" ||
	skip "tmux cannot start here"
see 20 'REPLAY'
# Steps from event to event until shortly before the kill, and plays from there.
until tm capture-pane -p | grep -qE ' it [0-9]*[5-9]/'; do tm send-keys '}'; sleep 0.3; done
tm send-keys P
for view in "${views[@]}"; do
	tm send-keys "$view"
	sleep $frame_s
	tm send-keys : && tm send-keys -l 'export svg' && tm send-keys Enter
	see 5 'saved as'
done

files=("$dir"/frames/*.svg)
[ ${#files[@]} = ${#views[@]} ] || die "${#files[@]} frames of ${#views[@]}"
awk -v n=${#files[@]} -v s=$frame_s '
	FNR == 1 && ++file == 1 {
		print
		printf "<style>g{visibility:hidden;animation:f %.1fs step-end infinite}@keyframes f{0%%{visibility:visible}%.3f%%{visibility:hidden}}</style>\n", n * s, 100 / n
	}
	FNR == 1 { printf "<g%s style=\"animation-delay:%.1fs\">\n", file == 1 ? " visibility=\"visible\"" : "", (file - 1) * s; next }
	/<\/svg>/ { print "</g>"; next }
	{ print }
	END { print "</svg>" }' "${files[@]}" >"$dir/console.svg"
cp "$dir/console.svg" "$(dirname "$0")/console.svg"
wc -c "$(dirname "$0")/console.svg"
