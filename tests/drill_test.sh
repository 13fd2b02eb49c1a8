#!/bin/bash
# A run with commands and faults writes a drill file. `skippipe drill` repeats the run without a console, and fails if a
# limit is exceeded.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key
drill() { timeout -k 5 120 "$bin/skippipe" drill "$@" >"$dir/drill.out" 2>"$dir/drill.err"; }

cat >"$dir/a.json" <<'END'
{"format": "skippipe.drill/1", "name": "a node dies", "run": {"agents": 9, "stages": [3, 3, 3], "skip": 1, "algorithm": "dtfm-skip",
 "wire": "bf16", "sum_wire": "q8", "iterations": 6, "time_scale": 0}, "acts": ["2:kill:4", "4:recover:4", "5:wire:q6"], "limits": {"slowest_s": 60, "loss": 5.5}}
END
drill "$dir/a.json" --headless --run-dir "$dir/run" || die "exit status $?: $(cat "$dir/drill.out")"
grep -q '^6 iterations committed' "$dir/drill.out" || die "$(cat "$dir/drill.out")"
grep -q '^ok .*recovery_s' "$dir/drill.out" || die "no recovery was seen"
grep -q '"2:kill:4"' "$dir/run/drill.json" || die "the run did not keep its acts"
grep -q '"algorithm": "dtfm-skip"' "$dir/run/drill.json" || die "the run did not keep what plans it"
grep -q '"wire": "bf16"' "$dir/run/drill.json" || die "the run did not keep the format of its first activations"
grep -q '"sum_wire": "q8"' "$dir/run/drill.json" || die "the run did not keep the format of its sums"
grep -q '"4:recover:4"' "$dir/run/drill.json" || die "the run did not keep its acts"

sed 's/"loss": 5.5/"loss": 0.5/' "$dir/a.json" >"$dir/b.json"
drill "$dir/b.json" && die "a drill succeeds although it misses a limit"
grep -q '^OVER loss' "$dir/drill.out" || die "$(cat "$dir/drill.out")"

# A drill also fails if an act is refused or comes after the end of the run, or if a limit has no measurement.
miss() { # miss SED-EXPRESSION WORDS: the drill with one change
	sed "$1" "$dir/a.json" >"$dir/miss.json"
	rm -rf "$dir/miss"
	drill "$dir/miss.json" --run-dir "$dir/miss" && die "a drill succeeds although something did not happen: $2"
	grep -qE -- "$2" "$dir/drill.out" "$dir/drill.err" || die "no \"$2\": $(cat "$dir/drill.out" "$dir/drill.err")"
}
miss 's/"4:recover:4"/"4:kill:4"/' '^MISSED 4:kill:4: n04 has no agent'
miss 's/"5:wire:q6"/"3:stop", "5:wire:q6"/' '^MISSED 5:wire:q6: the run ended before it'
miss 's/"2:kill:4", "4:recover:4", //; s/"slowest_s"/"recovery_s": 9, "slowest_s"/' \
	'^MISSED recovery_s: the run had nothing'
miss 's/2:kill:4/2:kill:9/' '2:kill:9: the cluster has 9 nodes, 0 to 8'
miss 's/5:wire:q6/7:wire:q6/' '7:wire: the run has 6 iterations'

# A recipe is written to the file as its phases, in iterations. A drill of this file must follow the phases.
cat >"$dir/e.json" <<'END'
{"format": "skippipe.drill/1", "run": {"agents": 6, "stages": [2, 2, 2], "skip": 1, "recipe": "robust", "phase_moves": true, "iterations": 10, "time_scale": 0},
 "acts": ["2:kill:3"], "limits": {"slowest_s": 60}}
END
skips() { grep -E '"(stages|skip_schedule|always|stack|no_swaps|phase_moves|grad_norm)"' "$1"; }
drill "$dir/e.json" --run-dir "$dir/first" || die "exit status $?: $(cat "$dir/drill.out")"
skips "$dir/first/drill.json" >"$dir/skips"
for skip in '"skip_schedule": "1@0,30%:1@2"' '"always": "0,2"' '"stack": true' '"no_swaps": true' '"phase_moves": true' '"grad_norm": "visits"'; do
	grep -qF "$skip" "$dir/skips" || die "the run did not keep $skip: $(cat "$dir/skips")"
done
sed -E 's/"(slowest_s|loss)": [0-9.e+-]+/"\1": 60/' "$dir/first/drill.json" >"$dir/f.json"
drill "$dir/f.json" --run-dir "$dir/second" || die "exit status $?: $(cat "$dir/drill.out" "$dir/drill.err")"
skips "$dir/second/drill.json" | diff "$dir/skips" - || die "the repeated run skips other stages"

sed 's/slowest_s/slowness/' "$dir/a.json" >"$dir/c.json"
sed 's/"recipe": "robust"/"stack": 1/' "$dir/e.json" >"$dir/g.json"
expect 2 'run.stack: expected true or false' "$bin/skippipe" drill "$dir/g.json"
sed 's/"agents": 9/"agents": 9.5/' "$dir/a.json" >"$dir/i.json"
expect 2 'run.agents: expected a whole number' "$bin/skippipe" drill "$dir/i.json"
sed 's/\[3, 3, 3\]/[4294967299, 3, 3]/' "$dir/a.json" >"$dir/j.json" # 2^32 + 3
expect 1 'expected counts like .*, got "4294967299,3,3"' "$bin/skippipe" drill "$dir/j.json" --headless --run-dir "$dir/many"
expect 2 'limits.slowness: unknown key' "$bin/skippipe" drill "$dir/c.json"
sed 's/"limits": .*/"limits": [60]}/' "$dir/a.json" >"$dir/h.json"
expect 2 'limits: expected an object' "$bin/skippipe" drill "$dir/h.json"
echo '{' >"$dir/d.json"
expect 2 'd.json:' "$bin/skippipe" drill "$dir/d.json"
expect 2 'usage' "$bin/skippipe" drill
echo "drills run again, and their limits bind"
