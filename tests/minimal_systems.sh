#!/bin/bash
# Tests the first use on a fresh machine: tests/minimal_systems.sh [SUITE...] (default: Debian 13 and
# Debian 12). All systems are tested at the same time.
#
# Each system is made from nothing and gets only git and make. The script clones the newest commit there. `make demo`
# installs the missing packages and runs five iterations, and verify recomputes them bit for bit. This proves that `make
# deps` names every package, and that the source compiles with each system's libraries.
#
# SUITE:cuda, such as bookworm:cuda (CUDA 11.8) or trixie:cuda (12.4), has Debian's nvidia-cuda-toolkit (non-free) and a
# C compiler. There `make check-gpu` for all cards must report that no GPU exists. Then the script installs the packages
# of `make deps`, builds all programs and lists their devices. It downloads 2 GB and needs 8 GB of disk. This system is
# not part of the default.
#
# Packages come from the mirror that apt uses on this machine, or from MIRROR. The systems are mounted in namespaces,
# and disappear with their processes.
. "$(dirname "$0")/lib.sh"
. tests/debian.sh
[ $# -gt 0 ] || set -- trixie bookworm
iterations=5

take_commit() { # take_commit ROOT: clones the newest commit into a system
	git clone -q --bare --depth 1 "file://$PWD" "$1/skippipe.git" || die "the commit cannot be cloned"
}

check_system() { # check_system SUITE: makes a system, runs the demo there and verifies it
	local root=$dir/$1 events=$dir/events start=$SECONDS made commits
	make_debian "$1" "$root" git,make
	made=$SECONDS
	take_commit "$root"
	inside "$root" "git clone -q /skippipe.git skippipe; cd skippipe
		make demo ARGS='--headless --format jsonl --iterations $iterations --time-scale 0 --run-dir /run/demo'" \
		>"$events" 2>"$dir/demo.err" || die "$1: make demo: exit status $?"
	commits=$(count "$events" commit)
	[ "$commits" = $iterations ] || die "$1: $commits commits"
	inside "$root" 'cd skippipe; build/bin/skippipe verify /run/demo --format json' >"$dir/verify.json" \
		2>"$dir/verify.err" || { cat "$dir/verify.json"; die "$1: verify finds a difference"; }
	echo "$1: made in $((made - start)) s, make demo and verify in $((SECONDS - made)) s: $commits commits, $(field hashes <"$dir/verify.json") hashes the same"
	rm -rf --one-file-system "$root"
}

# check_cuda SUITE: builds with the CUDA of the suite, first the check and then all programs
check_cuda() {
	local root=$dir/$1-cuda start=$SECONDS made code
	make_debian "$1" "$root" git,make main,contrib,non-free
	inside "$root" 'export DEBIAN_FRONTEND=noninteractive
		apt-get install -y --no-install-recommends nvidia-cuda-toolkit gcc libc6-dev; apt-get clean' \
		>"$dir/apt.err" 2>&1 || die "$1: nvidia-cuda-toolkit cannot be installed"
	made=$SECONDS
	take_commit "$root"
	inside "$root" 'git clone -q /skippipe.git skippipe; cd skippipe; nvcc --version; make -j2 check-gpu' \
		>"$dir/gpu.err" 2>&1 || die "$1: make check-gpu: exit status $?"
	grep -q 'there is no GPU' "$dir/gpu.err" || die "$1: it does not say that there is no GPU"
	inside "$root" 'cd skippipe; make deps; make -j2; build/bin/skippipe agent --devices' >"$dir/all.err" 2>&1 ||
		die "$1: make: exit status $?"
	grep -q '^device cuda:0: there is no GPU' "$dir/all.err" || die "$1: the agent knows no CUDA"
	# Finds the compute capabilities for which the program has code, from the names of its sections.
	code=$(inside "$root" 'cd skippipe; for kind in elf ptx; do cuobjdump --list-$kind build/bin/skippipe-agent; done' 2>"$dir/cuobjdump.err" |
		sed -n 's/.*\.\(sm_[0-9]*\)\.\(cubin\|ptx\)$/\1.\2/p' | sort -u | tr '\n' ' ')
	echo "$1: made in $((made - start)) s, built in $((SECONDS - made)) s by $(sed -n 's/.*release \(.*\), .*/CUDA \1/p' "$dir/gpu.err"): $code"
	rm -rf --one-file-system "$root"
}

can_make_debian || skip "$debian_why"
echo "commit $(git rev-parse --short HEAD)$(git diff --quiet HEAD || echo ', without what is not committed')"
# Systems are tested at the same time, because making one uses a single processor.
for suite in "$@"; do
	(
		dir=$dir/${suite/:/-} started=()
		mkdir "$dir" || exit 1
		trap finish EXIT
		trap '[ ${#started[@]} = 0 ] || kill -KILL "${started[@]}"; exit 143' TERM # unshare ignores SIGTERM
		case $suite in
		*:cuda) check_cuda "${suite%:cuda}" ;;
		*) check_system "$suite" ;;
		esac
	) &
	started+=($!)
done
failed=0
for pid in "${started[@]}"; do wait "$pid" || failed=1; done
started=()
exit $failed
