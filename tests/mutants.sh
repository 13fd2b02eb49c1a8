#!/bin/bash
# Makes small changes to the code, one at a time, and checks that a test fails with each of them.
#
#   tests/mutants.sh [--count N] [--seed N] [--jobs N] [--within S] [--again] [--unit] [--list] [FOLDER|FILE...]
#
#   --count   number of changes that give another object file           [100]
#   --seed    selects the changes                                       [1]
#   --jobs    number of parallel jobs                                   [2]
#   --within  skips tests that compute for more seconds                 [1000]
#   --again   only tries the changes that survived the last time, after a new test was written
#   --unit    only runs unit tests, without simulated runs and clusters
#   --list    only lists the possible changes (tests/mutants.awk)
#
# Without files, the script changes the files that decide about iterations, sums, copies, tensors and messages. It works
# in build-mutants, a copy of the tree that is built once and kept. A change that does not compile does not count.
# For each change, tests run in this order: the unit tests of the changed file; the other unit tests of its folder and
# of the folders that link it, the fastest first; a small cluster with faults, and verify. For the agent and the
# controller, simulated runs come before the unit tests that compute longer than ten seconds.
#
# The first test that fails has caught the change. It must fail twice, because a test can fail on a busy machine. A test
# also catches a change if it computes five times its usual time and for ten seconds, or takes twenty times its usual
# time and five minutes. The script prints a line for each change, and at the end the changes that no test has caught
# (survivors). If possible, tests have a /tmp of their own in memory.
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
count=100 seed=1 jobs=2 within=1000 again='' unit='' list=''
while [ $# -gt 0 ]; do
	case $1 in
	--help) sed -n '2,23s/^# \{0,1\}//p' "$0"; exit 0 ;;
	--again | --unit | --list) declare "${1#--}=yes"; shift ;;
	--count | --seed | --jobs | --within)
		[[ ${2:-} =~ ^[1-9][0-9]{0,6}$ ]] || { echo "$1: expected a number from 1, got \"${2:-}\"" >&2; exit 2; }
		declare "${1#--}=$2"; shift 2 ;;
	-*) echo "$1: unknown option (see --help)" >&2; exit 2 ;;
	*) break ;;
	esac
done
if [ $# = 0 ]; then
	for folder in controller/iteration controller/weights agent/sums agent/weights agent/tensors agent/execution wire; do
		[ ! -d "$folder" ] || set -- "$@" "$folder"
	done
fi
for path; do [ -e "$path" ] || { echo "$path: no such file or folder" >&2; exit 2; }; done
files=$(find "$@" -name '*.c' -not -path '*/tests/*' -not -name main.c | sort)
[ -n "$files" ] || { echo "$*: nothing to change" >&2; exit 2; }
[ -z "$list" ] || exec awk -f tests/mutants.awk $files

fail() { echo "$*" >&2; exit 1; }
# Updates the copy and builds the files that have changed.
root=$PWD work=$PWD/build-mutants
mkdir -p "$work" && exec 9>"$work/lock" && flock -n 9 || fail "build-mutants is in use"
git ls-files -co --exclude-standard | while read -r file; do
	[ ! -e "$file" ] || cmp -s "$file" "$work/$file" || cp --parents -p "$file" "$work"
done
cd "$work" || exit 1
rm -rf jobs caught
[ ! -e survivors ] || mv survivors survivors.before
[ -z "$again" ] || [ -e survivors.before ] || fail "nothing has survived a last time"
(cd "$root" && git ls-files -co --exclude-standard) >known
find . -path ./how -prune -o -name '*.[ch]' -print | sed 's|^\./||' | while read -r file; do
	grep -qxF "$file" known || rm -f "$file" build/lib*.a # the source was deleted or renamed, so its objects are removed
done

users() { # users FOLDER: prints the folders whose programs and tests link this folder, and first the folder itself
	echo "$1"
	sed -n "/[ =]$1\( \|\$\)/s/^uses_\([a-z]*\) *:=.*/\1/p" Makefile | grep -vx "$1"
}
tests_of() { for folder in $(users "$1"); do find "$folder/tests" -name '*_test.c'; done | sed 's|^|build/|; s|\.c$||'; }
folders=$(echo "$files" | cut -d / -f 1 | sort -u)
tests=$(for folder in $folders; do tests_of "$folder"; done | sort -u)
sim=build/tests/sim/sim_test
echo "builds what is changed, in $work"
make="make -o Makefile NVCC=" # the code for GPUs takes minutes to build and is not needed here
$make -s -j2 all $tests $sim >build.log 2>&1 9>&- || { tail -n 20 build.log >&2; exit 1; }

# Lists the commands that compile and link each file, from the Makefile. Options that make no difference are left out. A
# dry run of make prints the commands only in a tree that was never built.
mkdir -p how took jobs
ln -s ../deploy ../themes jobs # programs in jobs/N/bin look for these folders there
programs=$(for folder in $(for folder in $folders; do users "$folder"; done | sort -u); do
	sed -n "s|^program_$folder *:= *|$folder build/bin/|p" Makefile
done)
$make -n V=1 BUILD=never $(echo "$files" | sed 's|^|never/|; s|c$|o|') $(echo "$tests" "$programs" "$sim" | tr ' ' '\n' |
	sed -n 's|^build/|never/|p') | sed 's|never/|build/|g' >commands
how() { # how FILE COMMAND: prints the command that makes the file
	[ -n "$2" ] || fail "$1: the Makefile does not say how it is made"
	echo "$2" >"how/${1//\//:}"
}
for file in $files; do
	how "$file" "$(grep -- "-c -o build/${file%.c}.o" commands | sed 's/ -g / -g0 /; s/ -MMD -MP / -w /')"
done
how sim "$(grep -E -- " -o ($sim|build/tests/sim/only_agent.o) |^objcopy .* build/tests/sim/only_agent.o" commands)"
for test in $tests; do how "$test" "$(grep -- " -o $test " commands | sed 's/ -o / -Wl,-S -o /')"; done
echo "$programs" | while read -r folder program; do how "program:$folder" "$(grep -- " -o $program " commands)"; done

# alone JOB CPU-SECONDS SECONDS COMMAND...: runs a test in its own namespaces. When the test ends, all its processes
# end and its files are deleted, except the files in the folder of the job. Status 152: too much CPU time, 124: too
# much time.
alone() {
	local job=$1 computes=$2 most=$3 pid rc private=(env TMPDIR="$1/tmp")
	shift 3
	rm -rf "$job/tmp"
	mkdir -p "$job/tmp"
	[[ $work != /tmp/* ]] && unshare --mount true 2>/dev/null &&
		private=(unshare --mount sh -c 'mount -t tmpfs mutants /tmp && mount --bind /tmp /dev/shm && exec "$@"' sh)
	(
		ulimit -S -t "$computes"
		ulimit -v 8000000 -f 1000000 -c 0
		SKIPPIPE_BUILD=$job exec timeout -k 5 "$most" "${private[@]}" "$@"
	) >"$job/log" 2>&1 </dev/null 9>&- &
	pid=$!
	trap 'kill -KILL -- -$pid; exit 143' INT TERM
	wait $pid
	rc=$?
	trap - INT TERM
	kill -KILL -- -$pid 2>/dev/null
	return $rc
}

# Measures each test without a change. A test that fails even then is not used.
make_job() { # make_job: makes the programs of a job, as links to the built ones until one is linked with a change
	rm -rf "$1"
	mkdir -p "$1/bin"
	cp -l build/bin/* "$1/bin"
}
measure() { # measure TEST: writes the test's CPU time and duration to took/TEST
	local job=$work/jobs/measure.$$.$BASHPID before after from
	from=$(date +%s%N)
	make_job "$job"
	before=$(computed)
	for _ in 1 2 3; do
		if alone "$job" 600 1200 "$PWD/$1"; then
			after=$(computed)
			echo "$((after - before)) $((($(date +%s%N) - from) / 1000000000))" >"took/${1//\//:}"
			break
		fi
		before=$(computed)
	done
	[ -s "took/${1//\//:}" ] || echo "$1 fails as it is: left out"
	rm -rf "$job"
}
# Prints the CPU time of all child processes that have ended, in hundredths of a second.
computed() { awk '{ print $16 + $17 }' "/proc/$$/stat"; }

too_long() { [ -s "$1" ] && [ "$(cut -d ' ' -f 1 "$1")" -gt $((100 * within)) ]; }

# Sorts the tests: first those of the changed file, then by CPU time; simulated runs come before slow tests.
order() { # order FILE: prints TEST CPU-HUNDREDTHS SECONDS
	local test own
	own=$(basename "$1" .c)_test
	for test in $(tests_of "${1%%/*}"); do
		[ ! -s "took/${test//\//:}" ] || echo "$([ "${test##*/}" = "$own" ] && echo 0 || echo 1) $(cat "took/${test//\//:}") $test"
	done | sort -k 1n -k 2n | awk -v most="$within" -v sim="$(simulated "$1")" '
		sim && $1 > 0 && $2 > 1000 { print sim, 2500, 30; sim = "" }
		$2 <= 100 * most { print $4, $2, $3 }
		END { if (sim) print sim, 2500, 30 }'
}

simulated() { # simulated FILE: succeeds if the simulated runs use it
	case $unit$1 in agent/* | controller/*) echo $sim ;; esac
}

# catches JOB FILE: prints the test that catches the change whose object is JOB/changed.o; nothing if none does
catches() {
	local job=$1 test computed took folder linked=''
	while read -r test computed took; do
		folder=${test#build/}
		folder=${folder%%/*}
		if [[ $test != "$sim" && " $linked " != *" $folder "* ]]; then
			link_program "$job" "$folder" || { echo "the linker"; return; }
			linked+=" $folder"
		fi
		link_test "$job" "$2" "$test" || { echo "the linker"; return; }
		fails "$job" $((10 + 5 * computed / 100)) $((300 + 20 * took)) env SIM_FAILURES=1 "$job/test" && { echo "$test"; return; }
	done < <(order "$2")
	[ -z "$unit" ] || return
	for folder in $(users "${2%%/*}"); do
		[[ " $linked " == *" $folder "* ]] || link_program "$job" "$folder" || { echo "the linker"; return; }
	done
	fails "$job" 120 900 tests/small_cluster.sh && echo tests/small_cluster.sh
}
link_test() { # link_test JOB FILE TEST: links the test, or the simulated run, with the changed object
	if [ "$3" = "$sim" ]; then link_sim "$1" "$2"; else link "$1" "how/${3//\//:}" "$1/test"; fi
}
link() { # link JOB COMMAND TO: links the changed object before the archives, so that it replaces the object there
	local command
	command=$(sed "s| -o [^ ]* | -o $3 $1/changed.o |" "$2")
	eval "$command" >"$1/log" 2>&1
}
link_sim() { # link_sim JOB FILE: links the simulated run. The agent is one object in it, which exports only few names
	local command
	command=$(sed "s| build/${2%.c}.o | $1/changed.o |; s|build/tests/sim/only_agent.o|$1/only_agent.o|; s| -o $sim | -o $1/test |" how/sim)
	[[ $2 == agent/* ]] || command=$(echo "$command" | sed "s| -o $1/test | -o $1/test $1/changed.o |")
	eval "$command" >"$1/log" 2>&1
}
link_program() { # link_program JOB FOLDER: links the folder's program with the changed object
	local program
	[ -s "how/program:$2" ] || return 0
	program=$(sed 's/.* -o \([^ ]*\) .*/\1/' "how/program:$2")
	rm -f "$1/bin/${program##*/}"
	link "$1" "how/program:$2" "$1/bin/${program##*/}"
}
fails() { # fails JOB CPU-SECONDS SECONDS COMMAND...: succeeds if the command fails twice or takes too long
	local rc
	alone "$@" && return 1
	rc=$?
	[ $rc != 152 ] && [ $rc != 124 ] || return 0
	! alone "$@"
}

# try NUMBER FILE LINE KIND TEXT: tries a change and prints the result
try() {
	local job=$work/jobs/$1 by
	by=$(catches "$job" "$2")
	printf '%3d %s:%d: %s: %s  [%s]\n' "$1" "$2" "$3" "$4" "$5" "${by:-SURVIVED}" | tee -a caught
	[ -n "$by" ] || printf '%s\t%s\t%s\n' "$2" "$4" "$5" >>survivors
	rm -rf "$job"
}

# Shuffles lines by the seed alone, with the generator of Park and Miller, because awks differ in their own.
shuffled() { awk -v x="$seed" '{ for (i = 0; i < 3; i++) x = x * 16807 % 2147483647; printf "%010d\t%s\n", x, $0 }' | sort | cut -f 2-; }
those_again() { awk -F '\t' 'NR == FNR { again[$0]; next } ($1 FS $3 FS $4) in again' survivors.before -; }
object_of() { # object_of FILE SOURCE TO: compiles SOURCE with the command for FILE
	local command
	command=$(sed "s| -o [^ ]* [^ ]*\$| -o $3 $2|" "how/${1//\//:}")
	eval "$command" >"$3.log" 2>&1
}
# Compiles changes until enough of them change the object, and gives each of these to a job.
compile_changes() {
	local made=0 alike=0 file line what text job base
	while IFS=$'\t' read -r file line what text; do
		[ $made -lt "$count" ] || break
		job=$work/jobs/$((made + 1))
		make_job "$job"
		base=$work/how/${file//\//:}.o
		for source in original changed; do
			mkdir -p "$job/$source"
			{ echo "#line 1 \"$file\""; cat "$file"; } >"$job/$source/${file##*/}"
		done
		[ "$base" -nt "$file" ] || object_of "$file" "$job/original/${file##*/}" "$base" || fail "$file does not compile"
		awk -v line=$((line + 1)) -v text="$text" 'BEGIN { gsub(/&/, "\\\\&", text) } NR == line { sub(/[^ \t].*/, text) } { print }' \
			"$job/original/${file##*/}" >"$job/changed/${file##*/}"
		if object_of "$file" "$job/changed/${file##*/}" "$job/changed.o" && ! cmp -s "$base" "$job/changed.o"; then
			made=$((made + 1))
			printf '%s\0' "$made" "$file" "$line" "$what" "$text"
		else
			alike=$((alike + 1))
		fi
	done < <(awk -f tests/mutants.awk $files | shuffled | if [ "$again" ]; then those_again; else cat; fi)
	echo $alike >alike
}
export work root unit within sim
export -f users tests_of alone make_job measure computed order simulated catches link link_test link_sim link_program fails try
echo "measures $(echo "$tests" | wc -l) tests"
for test in $tests; do
	[ "took/${test//\//:}" -nt "$test" ] || too_long "took/${test//\//:}" || printf '%s\0' "$test"
done | xargs -0 -r -n 1 -P "$jobs" bash -c 'measure "$@"' measure
compile_changes | xargs -0 -r -n 5 -P "$jobs" bash -c 'try "$@"' try

touch caught
survived=$(grep -c '\[SURVIVED\]$' caught)
made=$(wc -l <caught)
printf '\n%d changes (seed %d), %d caught, %d survived; %d more do not compile or compile to the same\n' \
	"$made" "$seed" $((made - survived)) "$survived" "$(cat alike)"
grep '\[SURVIVED\]$' caught | sort -n
exit 0
