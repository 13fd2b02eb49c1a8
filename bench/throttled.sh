#!/bin/bash
# Compares a run whose stages the controller chooses with a run of equal cuts, on six agents. Two agents get a third
# of the others' processor time: bench/throttled.sh [OPTION...]
# Each agent has a control group with a quota. All six together need less than one core. The groups have precedence, so
# other processes of this machine change the times little. The script prints the seconds of an iteration that the first
# plan predicts, the seconds that were measured (the median), and the ratio of the two runs.
# Needs root, and the cpu controller of control groups (version 1 or 2).
#
#   --percent P        share of a core that a fast agent gets  [15]
#   --iterations N     iterations of each run; the first one is not counted  [6]
#   --limit-s S        ends a run that takes longer  [1800]
#
# With SKIPPIPE_KEEP=FOLDER the script copies the runs, their events and logs there at the end.
. "$(dirname "$0")/../tests/lib.sh"
. tests/six_agents.sh
need skippipe skippipe-controller skippipe-agent skippipe-key awk unshare
percent=15 iterations=6 limit=1800
while [ $# -gt 0 ]; do
	case $1 in
	--help) sed -n '2,13s/^# \{0,1\}//p' bench/throttled.sh; exit 0 ;;
	--percent | --iterations) declare "${1#--}=$2" ;;
	--limit-s) limit=$2 ;;
	*) die "$1: unknown option (see --help)" ;;
	esac
	shift 2
done

# ---- control groups: $groups holds one for each agent

period_us=20000 # 20 ms: the kernel's smallest quota, 1 ms, is then 5% of a core, a third of 15%
if [ -d /sys/fs/cgroup/cpu ]; then
	groups=/sys/fs/cgroup/cpu/skippipe-throttled-$$
	mkdir "$groups" 2>/dev/null || skip "no right to make a control group"
	echo 262144 >"$groups/cpu.shares"
else
	groups=/sys/fs/cgroup/skippipe-throttled-$$
	mkdir "$groups" 2>/dev/null || skip "no right to make a control group"
	{ echo +cpu >/sys/fs/cgroup/cgroup.subtree_control && echo +cpu >"$groups/cgroup.subtree_control"; } 2>/dev/null ||
		skip "the cpu controller of control groups is not available"
	echo 10000 >"$groups/cpu.weight"
fi
undo+=("find $groups -depth -type d -exec rmdir {} +")

# throttle GROUP PERCENT: makes a group whose processes get this share of a core
throttle() {
	local quota_us=$((period_us * $2 / 100))
	[ $quota_us -ge 1000 ] || die "$2% of a core is less than the kernel allows"
	mkdir "$groups/$1" || die "no control group"
	if [ -e "$groups/$1/cpu.max" ]; then
		echo "$quota_us $period_us" >"$groups/$1/cpu.max"
	else
		echo $period_us >"$groups/$1/cpu.cfs_period_us" && echo $quota_us >"$groups/$1/cpu.cfs_quota_us"
	fi || die "no quota for $1"
}
for i in 0 1 2 3; do throttle "agent$i" "$percent"; done
for i in 4 5; do throttle "agent$i" $((percent / 3)); done
mkdir "$groups/controller" || die "no control group"

# Starts skippipe in a control group. Each agent has a network of its own, as in a container: otherwise the
# controller would conclude that agents with equal quotas share the processor time of one container.
cat >"$dir/skippipe" <<END
#!/bin/bash
[ "\$1" = agent ] || { echo \$\$ >"$groups/controller/cgroup.procs"; exec "$bin/skippipe" "\$@"; }
i=\$(sed 's/.*--node \([0-9]*\).*/\1/' <<<"\$*")
echo \$\$ >"$groups/agent\$i/cgroup.procs"
exec unshare --net "$bin/skippipe" "\$@"
END
chmod +x "$dir/skippipe"
sk=$dir/skippipe

# ---- the runs

# Layers of this width take most of the processor time. With narrower layers, messages would take a larger share, and
# predictions do not include the time for messages.
cat >"$dir/model.json" <<'END'
{"format": "skippipe.model/1",
 "model": {"vocab": 256, "dim": 192, "n_layers": 6, "n_heads": 6, "n_kv_heads": 3, "ffn_dim": 512, "context": 256,
  "n_stages": 6, "rope_theta": 10000.0, "norm_eps": 1e-5, "init_std": 0.06, "tied": false},
 "recipe": {"batch": 16, "sequence": 64, "lr": 0.005, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1,
  "clip": 1.0, "warmup": 5, "iterations": 0, "final_lr": 1.0, "schedule": "wsd"}}
END

# run NAME CONTROLLER-OPTIONS...: sets $predicted and $measured
run() {
	local name=$1
	shift
	six_begin "$name" --run-dir "$dir/$name" --agents 6 --model "$dir/model.json" --iterations "$iterations" \
		--eval-every 0 --checkpoint-every 0 --overdue-s 120 "$@"
	wait_for "$dir/$name.events" "$iterations" $controller "$limit"
	six_end || die "$name: the controller failed"
	predicted=$(grep '"event":"plan"' "$dir/$name.events" | head -n 1 |
		sed -n 's/.*"predicted_s":\([0-9.e+-]*\),"predicted_sync_s":\([0-9.e+-]*\).*/\1 \2/p' | awk '{ print $1 + $2 }')
	measured=$(grep '"event":"iteration"' "$dir/$name.events" | tail -n +2 | field real_s | sort -g |
		awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }')
	awk -v name="$name" -v p="$predicted" -v m="$measured" \
		'BEGIN { printf "%s: predicted %.3f s, measured %.3f s (%+.1f%%)\n", name, p, m, 100 * (m / p - 1) }'
}

six_keys
echo "four agents with $percent% of a core, two with $((percent / 3))%"
run chosen
sed -n 's/.*\(chosen: .*\)/\1/p; s/.*\(n[0-9]* is left out: .*\)/\1/p' "$dir/chosen.err"
chosen=$measured
run equal --stages 2,2,2 --microbatches 24
awk -v c="$chosen" -v e="$measured" 'BEGIN { printf "equal cuts take %.2f times as long\n", e / c }'
