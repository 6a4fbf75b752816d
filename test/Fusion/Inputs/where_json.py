"""where_json.py < JSON: of a target with plans for some sizes alone, what `fusec explain --json` says of each plan adds
up, and agrees with what it says of the sizes asked for."""

import json
import sys

SUMS = ("bytes_read", "bytes_written", "predicted_s")


def close(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def add_up(plan):
    for key in SUMS:
        assert close(sum(k[key] for k in plan["kernels"]), plan["totals"][key]), key
        assert close(sum(k["unfused"][key] for k in plan["kernels"]), plan["unfused"][key]), key
    assert plan["totals"]["launches"] == len(plan["kernels"]) <= plan["unfused"]["launches"]
    assert (plan["for_all_sizes"] is None) == (plan["where"] is None)
    # Reasons are told of the plan for all sizes.
    assert bool(plan["apart"]) == (plan["where"] is None)


target = json.loads(sys.stdin.readline())
plans = [target, *target["other_plans"]]
for plan in plans:
    add_up(plan)
    for condition in (plan["where"] or "").split(", "):
        if condition:
            name, sizes = condition.split(" = ")
            least, most = (int(size) for size in (sizes.split("..") * 2)[:2])
            assert least <= plan["symbols"][name] <= most, condition
    if plan["where"]:
        assert plan["for_all_sizes"]["predicted_s"] > plan["totals"]["predicted_s"]
for at in target["at"]:
    plan = next(p for p in plans if p["where"] == at.get("where"))
    assert [k["name"] for k in plan["kernels"]] == [k["name"] for k in at["kernels"]]
    if plan["symbols"] == at["sizes"]:
        assert close(plan["totals"]["predicted_s"], at["predicted_s"])
print(", ".join(f"where {p['where']}" if p["where"] else "for all sizes" for p in plans) + ": add up")
