#!/bin/bash
# tests/tsan.sh BUILD: runs the programs with threads under ThreadSanitizer: the unit tests of the folders that use
# threads, and a small demo with faults. A program ends at its first finding. BUILD is a folder that was built with
# SANITIZE=thread (make tsan). protocol_test is left out, because it has a single thread and computes for minutes.
set -u
cd "$(dirname "$0")/.."
build=$1
export TSAN_OPTIONS="halt_on_error=1 exitcode=66${TSAN_OPTIONS:+ $TSAN_OPTIONS}"
tests=()
for folder in wire store agent controller verify; do
	for t in "$build/$folder"/tests/*_test; do [ "${t##*/}" = protocol_test ] || tests+=("$t"); done
done
tests/run.sh --unit "$build" "${tests[@]}" || exit 1

SKIPPIPE_BUILD=$PWD/$build exec tests/small_cluster.sh
