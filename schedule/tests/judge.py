#!/usr/bin/env python3
"""Judges a plan on a cluster, written from the execution model's text alone: it shares no code
with the C simulator or checker and exists to disagree with them.

  judge.py CLUSTER PLAN          prints iteration_s, sync_s and what is broken; exit 3 if anything
  judge.py --events CLUSTER PLAN one line per task: microbatch kind node arrival start end
  judge.py --phases CLUSTER FILE the plans of a run's phases, made for fp32: what is broken
"""
import heapq
import json
import sys


def delays(c):
    if "delay_s" in c:
        return c["delay_s"]
    latency, speed = c["links"]["latency_s"], c["links"]["bandwidth_bytes_per_s"]
    extra = c.get("transfer_overhead_s", 0)
    return [[None if a is None or a < 0 or not b or b <= 0 else a + c["activation_bytes"] / b + extra
             for a, b in zip(row, speeds)] for row, speeds in zip(latency, speed)]


def simulate(c, p):
    """Returns (tasks, unfinished); a task is (microbatch, kind, node, arrival, start, end)."""
    delay, nodes, over = delays(c), c["nodes"], c.get("dispatch_overhead_s", 0)
    order = {int(n): {(m, k): i for i, (m, k) in reversed(list(enumerate(tasks)))}
             for n, tasks in p.get("order", {}).items()}
    chains = {}
    for m in p["microbatches"]:
        path = m["path"]
        chains[m["id"]] = ([("F", n) for n in path] + [("L", path[0])] + [("B", n) for n in path[::-1]])

    stage_of = {n: s for s, members in enumerate(p["assignment"]) for n in members}
    work = c.get("stage_work", [1] * len(p["assignment"]))

    def lasts(kind, node):
        if kind == "L":
            return nodes[node]["loss_s"]
        return nodes[node]["forward_s" if kind == "F" else "backward_s"] * work[stage_of[node]]

    at = {m: 0 for m in chains}
    waiting = [[] for _ in nodes]          # (arrival, microbatch, kind)
    busy = [False] * len(nodes)
    held = [0] * len(nodes)
    events = [(m.get("release_s", 0), 0, m["id"]) for m in p["microbatches"]]
    heapq.heapify(events)
    tasks = []
    while events:
        now, touched = events[0][0], set()
        while events and events[0][0] == now:
            _, what, who = heapq.heappop(events)
            if what == 0:
                node = chains[who][at[who]][1]
                waiting[node].append((now, who, chains[who][at[who]][0]))
                touched.add(node)
            else:
                busy[who] = False
                touched.add(who)
        for node in touched:
            if busy[node]:
                continue
            ready = [(order.get(node, {}).get((m, k), float("inf")), arrival, m, k)
                     for arrival, m, k in waiting[node]
                     if k != "F" or held[node] < nodes[node]["memory"]]
            if not ready:
                continue
            _, arrival, m, kind = min(ready)
            waiting[node].remove((arrival, m, kind))
            end = now + lasts(kind, nodes[node])
            held[node] += (kind == "F") - (kind == "B")
            tasks.append((m, kind, node, arrival, now, end))
            busy[node] = True
            heapq.heappush(events, (end + over, 1, node))
            at[m] += 1
            if at[m] < len(chains[m]):
                to = chains[m][at[m]][1]
                heapq.heappush(events, (end if to == node else end + delay[node][to], 0, m))
    return tasks, [m for m in chains if at[m] < len(chains[m])]


def sync(c, p):
    pair, most = c.get("sync_pair_s"), 0
    for stage in p["assignment"] if pair else []:
        r = len(stage)
        slowest = max([pair[a][b] or 0 for a in stage for b in stage if a != b], default=0)
        most = max(most, 2 * (r - 1) / r * slowest)
    return most


def total(c, p, tasks):
    most = 0
    for s, stage in enumerate(p["assignment"]):
        end = max((t[5] for t in tasks if t[2] in stage), default=0)
        most = max(most, end + sync(c, {"assignment": [stage]}))
    return most


def legal_order(stages):
    """CC2 by search: can disjoint exchanges of neighbours make it ascend?"""
    if len(stages) < 2:
        return True
    best = False
    for cut in (1, 2):
        head, rest = stages[:cut], stages[cut:]
        if cut == 2:
            if len(head) < 2 or head[0] != head[1] + 1:
                continue
            head = head[::-1]
        if sorted(head) == head and (not rest or max(head) < min(rest)) and legal_order(rest):
            best = True
    return best


def rules(c, p, tasks, unfinished):
    broken = []
    stage = {n: s for s, group in enumerate(p["assignment"]) for n in group}
    delay, length, S = delays(c), p["path_length"], len(c["stages"])
    if sum(map(len, p["assignment"])) != len(stage):
        broken.append("shape: a node in two stages")
    if any(len(g) > n or not g for g, n in zip(p["assignment"], c["stages"])):
        broken.append("shape: stage sizes")
    sent, short = {}, {}
    visits, always = [0] * S, {0} | set(p.get("always_visited", [])) | set(c.get("always_visited", []))
    share = p.get("skip_share", 100)
    for m in p["microbatches"]:
        path = m["path"]
        where = [stage.get(n, -1) for n in path]
        sent[m["data_node"]] = sent.get(m["data_node"], 0) + 1
        short[m["data_node"]] = short.get(m["data_node"], 0) + (len(path) == length)
        if len(path) not in ((length,) if share == 100 else (length, S)) or len(set(where)) != len(where) or -1 in where:
            broken.append(f"shape: path of {m['id']}")
        if where[0] != 0 or path[0] != m["data_node"] or not always <= set(where):
            broken.append(f"CC1: {m['id']}")
        if not legal_order(where[1:]):
            broken.append(f"CC2: {m['id']} {where}")
        for s in where:
            visits[s] += 1
        for a, b in zip(path, path[1:] + path[:1]):
            if a != b and any(d is None or d < 0 for d in (delay[a][b], delay[b][a])):
                broken.append(f"shape: link of {m['id']}")
    others = [v for s, v in enumerate(visits) if s not in always]
    if others and max(others) - min(others) > 1:
        broken.append(f"CC3: {visits}")
    if length < S and any(k != (sent[n] * share + 50) // 100 for n, k in short.items()):
        broken.append(f"share: {short}")
    each = c["microbatches_per_data_node"]
    counts = [sent.get(n, 0) for n in p["assignment"][0]]
    full = len(p["microbatches"]) == each * c["stages"][0]
    if any(n != each for n in counts) and not (full and max(counts) - min(counts) <= 1):
        broken.append(f"batch: {counts}")
    for n, node in enumerate(c["nodes"]):
        changes = sorted([(t[5], -1) for t in tasks if t[2] == n and t[1] == "B"] +
                         [(t[4], 1) for t in tasks if t[2] == n and t[1] == "F"])
        held = 0
        for _, by in changes:
            held += by
            if held > node["memory"]:
                broken.append(f"TC1: node {n}")
                break
    if unfinished:
        broken.append(f"TC1: standstill of {len(unfinished)}")
    return broken


def phases(c, run):
    """Judges the plans and the totals of a run, without and with moves."""
    broken, batch = [], c["microbatches_per_data_node"] * c["stages"][0]
    for name in ("without_moves", "with_moves"):
        at, seconds = 1, 0
        for k, phase in enumerate(run[name]["phases"]):
            p, each = phase["plan"], phase["microbatches_per_data_node"]
            own = {**c, "stages": phase["replicas"], "microbatches_per_data_node": each}
            tasks, unfinished = simulate(own, p)
            took = (total(own, p, tasks) if p.get("overlap_sync")
                    else max(t[5] for t in tasks) + sync(own, p))
            broken += [f"{name} {k}: {b}" for b in rules(own, p, tasks, unfinished)]
            if abs(took - phase["seconds"]) > 1e-6:
                broken.append(f"{name} {k}: {took} s, not {phase['seconds']}")
            if each * phase["replicas"][0] != batch or phase["from"] != at:
                broken.append(f"{name} {k}: batch or first iteration")
            if list(map(len, p["assignment"])) != phase["replicas"]:
                broken.append(f"{name} {k}: replicas")
            at += phase["iterations"]
            seconds += phase["iterations"] * phase["seconds"] + phase["delay_s"]
        if abs(seconds - run[name]["total_s"]) > 1e-6 * seconds:
            broken.append(f"{name}: {seconds} s, not {run[name]['total_s']}")
    print(json.dumps({"broken": broken}))
    return 3 if broken else 0


def main(argv):
    if argv[:1] == ["--phases"]:
        return phases(*(json.load(open(f)) for f in argv[1:]))
    events = argv[:1] == ["--events"]
    c, p = (json.load(open(f)) for f in argv[events:])
    tasks, unfinished = simulate(c, p)
    if events:
        for t in sorted(tasks, key=lambda t: (t[4], t[2])):
            print(t[0], t[1], t[2], *(repr(x) for x in t[3:]))
        return 0
    broken = rules(c, p, tasks, unfinished)
    waits = [t[4] - t[3] for t in tasks if t[4] > t[3] and not (t[1] == "F" and t[2] == next(
        m["path"][0] for m in p["microbatches"] if m["id"] == t[0]))]
    print(json.dumps({"iteration_s": max((t[5] for t in tasks), default=0), "sync_s": sync(c, p),
                      **({"total_s": total(c, p, tasks)} if p.get("overlap_sync") else {}),
                      "collisions": len(waits), "collision_wait_s": sum(waits), "broken": broken}))
    return 3 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
