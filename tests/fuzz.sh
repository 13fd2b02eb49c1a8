#!/bin/sh
# tests/fuzz.sh SECONDS [NAME...]: builds every <folder>/tests/<name>_fuzz.c with libFuzzer, ASan and UBSan, together
# with the sources that its folder may use. Runs each for SECONDS on the inputs in <folder>/tests/corpus/<name>/. New
# inputs and findings are in build/fuzz/<name>/. Exit status: 1 at the first finding, 77 without clang or libFuzzer.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
only=" $* "
clang=${CLANG:-clang}
out=${BUILD:-build}/fuzz
mkdir -p "$out"

echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n);
int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d == 0 && n == 1; }' >"$out/probe.c"
if ! "$clang" -fsanitize=fuzzer,address,undefined -o "$out/probe" "$out/probe.c" 2>"$out/probe.log"; then
	echo "fuzz: skipped: needs clang with libFuzzer (Debian: clang and libclang-rt-dev)"
	exit 77
fi

wanted=
for source in */tests/*_fuzz.c; do
	case "$only" in "  " | *" $(basename "$source" _fuzz.c) "*) wanted="$wanted $out/obj/${source%.c}" ;; esac
done
# shellcheck disable=SC2086
${MAKE:-make} --no-print-directory -s -j2 CC="$clang" OPT="-O1 -gline-tables-only" SANITIZE=fuzzer,address,undefined BUILD="$out/obj" $wanted

failed=0
for source in */tests/*_fuzz.c; do
	[ -e "$source" ] || continue
	folder=${source%%/*}
	name=$(basename "$source" _fuzz.c)
	case "$only" in "  " | *" $name "*) ;; *) continue ;; esac
	place=$out/$name
	corpus=$folder/tests/corpus/$name
	mkdir -p "$place/corpus" "$corpus"
	echo "fuzz: $name, $seconds s"
	if "$out/obj/${source%.c}" -max_total_time="$seconds" -artifact_prefix="$place/" -print_final_stats=1 \
		-rss_limit_mb=2048 -timeout=10 "$place/corpus" "$corpus" >"$place/log" 2>&1; then
		sed -n 's/^stat::number_of_executed_units: */fuzz: '"$name"': executions /p' "$place/log"
	else
		tail -40 "$place/log"
		echo "fuzz: $name FAILED: the input is in $place/"
		failed=1
	fi
done
exit $failed
