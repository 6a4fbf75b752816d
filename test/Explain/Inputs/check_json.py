"""check_json.py MODEL.onnx README < JSON: what `fusec explain --json` says adds up and speaks of the model's nodes, and
the README names all of its fields."""

import json
import re
import sys

import onnx

HELD = re.compile(r"  keep (\S+) \w+ from \1$")  # from round to round
SUMS = ("launches", "bytes_read", "bytes_written", "predicted_s")
LEVELS = {"register", "shuffle", "shared", "device", "barrier", "counters", "recompute"}


def close(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def names(graph):
    for node in graph.node:
        yield node.name
        for attribute in node.attribute:
            yield from names(attribute.g)


def parts(schedule):
    """Parts of a kernel that need each other no more than a barrier tells: phases, each with its block loops."""
    found, here = 0, 0
    for line in schedule:
        if line.startswith("    block "):
            here += 1
        elif line == "    barrier":
            found, here = found + max(here, 1), 0
    return found + max(here, 1)


def fields(value):
    """Of all objects, but for those whose fields are the model's symbols, or levels."""
    if isinstance(value, list):
        for item in value:
            yield from fields(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            if key not in ("symbols", "without_size", "sizes", "inferred", "levels"):
                yield from fields(item)


nodes = set(names(onnx.load(sys.argv[1]).graph))
with open(sys.argv[2], encoding="utf-8") as file:
    named = set(re.findall(r"`(\w+)(?:\[\])?`", file.read()))
for line in sys.stdin:
    target = json.loads(line)
    assert set(fields(target)) <= named, set(fields(target)) - named
    kernels, apart = target["kernels"], target["apart"]
    phased = several = False
    assert set(target["levels"]) <= LEVELS
    for key in SUMS[1:]:
        assert close(sum(k[key] for k in kernels), target["totals"][key]), key
    for key in SUMS:
        assert close(sum(k["unfused"][key] for k in kernels), target["unfused"][key]), key
    assert target["totals"]["launches"] == len(kernels)
    for key in SUMS:
        assert target["totals"][key] < target["uncomposed"][key] and target["unfused"][key] < target["uncomposed"][key]
    fewer = sum(len(k["equations"]) - 1 for k in kernels)
    assert target["unfused"]["launches"] - len(kernels) == fewer
    for k in kernels:
        assert k["nodes"] and set(k["nodes"]) <= nodes, k["nodes"]
        assert k["bytes_read"] >= 0 and k["bytes_written"] > 0 and k["predicted_s"] > 0
        moved = k["bytes_read"] + k["bytes_written"]
        apiece = k["unfused"]["bytes_read"] + k["unfused"]["bytes_written"]
        phases = len(k["phase_starts"]) + 1
        # Values that stay in a block are neither written nor read again.
        kept = any(e["level"] in ("register", "shuffle", "shared") for e in k["edges"])
        if len(k["equations"]) == 1:
            assert moved == apiece, k["name"]
        else:
            assert moved < apiece if kept else moved <= apiece, k["name"]
        assert sum(x["name"] == k["name"] for x in kernels) == k["launches"]
        # A step reads what the kernel reads of constants once again, from memory that has it.
        if step := k["each_step"]:
            assert step["steps"] > 1 and 0 < step["constant_bytes"] + step["held_bytes"] <= k["bytes_read"]
            assert (step["held_bytes"] > 0) == any(HELD.match(line) for line in k["schedules"][-1])
            assert close(sum(part["bytes"] for part in step["from"]), step["constant_bytes"])
        assert bool(step) == any(line.strip().startswith("seq step:") for line in k["schedules"][-1]), k["name"]
        assert k["served"] and all(part["bytes"] >= 0 for part in k["served"]), k["name"]
        # Of trees of several contractions the one that moves least, then the runner-up.
        if space := k["space"]:
            moved_bytes = [choice["moved_bytes"] for choice in space["best"]]
            assert moved_bytes == sorted(moved_bytes) and "expressions" in space["pruning"]
        assert {e["level"] for e in k["edges"]} <= set(target["levels"])
        # An alternative such as "recompute" leaves values out.
        rewritten = any(line.startswith("  via ") for line in k["schedules"][0])
        assert len(k["edges"]) >= len(k["equations"]) - parts(k["schedules"][0]) or rewritten
        chosen = [c for c in k["considered"] if c["chosen"]]
        # All blocks wait where barriers stand at the root; in a scan's rounds the step loop there has more.
        waits, root = k["barriers"], [line for line in k["schedules"][-1] if line in ("    barrier", "    counters")]
        steps = any(line.startswith("    seq step:") for line in k["schedules"][-1])
        assert waits["counters"] == root.count("    counters") and waits["of_block"] >= 0, k["name"]
        assert waits["of_device"] == root.count("    barrier") or (steps and root and waits["of_device"] > 1), k["name"]
        # Blocks wait between phases, those of a scan's rounds among them.
        borders = {line.strip() for line in k["schedules"][-1]} & {"barrier", "counters"}
        assert (phases > 1) <= bool(borders)
        assert {e["level"] for e in k["edges"]} & {"barrier", "counters"} <= borders
        assert len(chosen) == 1 and (len(k["considered"]) > 1 or phases > 1)
        assert chosen[0]["predicted_s"] == min(c["predicted_s"] for c in k["considered"])
        # Of a kernel of several phases, each was chosen from its own candidates.
        assert len(k["considered_of_phases"]) == (phases if phases > 1 else 0)
        for of_phase in k["considered_of_phases"]:
            assert sum(c["chosen"] for c in of_phase) == 1
        several |= any(len(of_phase) > 1 for of_phase in k["considered_of_phases"])
        phased |= phases > 1
        # What threads keep is decided for the chosen one.
        keeps = any(line.startswith("  keep ") for schedule in k["schedules"] for line in schedule)
        assert keeps or chosen[0]["predicted_s"] == k["predicted_s"]
        assert k["schedules"] and k["schedules"][0][0].startswith("schedule ")
    # A value that a kernel reads and another wrote has a reason.
    writer = {t: i for i, k in enumerate(kernels) for t in k["outputs"]}
    between = {(writer[t], i, t) for i, k in enumerate(kernels) for t in k["inputs"] if t in writer}
    listed = {(a["from"], a["to"], a["tensor"]) for a in apart if a["from"] is not None and a["to"] is not None}
    assert between == listed, between ^ listed
    assert all(a["reason"] for a in apart)
    assert several == phased
    for a in apart:
        pair = (a["from"], a["to"])
        assert a["tensors"] == len({b["tensor"] for b in apart if (b["from"], b["to"]) == pair})
        for end in ("from", "to"):
            assert a[f"{end}_kernel"] == (None if a[end] is None else kernels[a[end]]["name"])
        for side, end in (("producer_nodes", "from"), ("consumer_nodes", "to")):
            assert a[side] and set(a[side]) <= (nodes if a[end] is None else set(kernels[a[end]]["nodes"])), a
    print(target["target"], len(kernels), "kernels", len(apart), "apart: adds up")
