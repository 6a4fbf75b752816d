"""calibration.py THREADS HELP < fusert calibrate --json: fails where a figure cannot be, or HELP leaves it out."""

import json
import re
import sys

threads = int(sys.argv[1])
given = json.load(sys.stdin)
assert given["device"] and given["threads"] == threads and given["repetitions"] == 3
figures = given["figures"]
assert {figure["threads"] for figure in figures} == {1, threads}
for figure in figures:
    assert 0 < figure["lowest"] <= figure["median"] <= figure["highest"], figure

with open(sys.argv[2]) as file:
    explained = file.read()
for what in {figure["what"] for figure in figures}:
    assert re.search(rf"\b{what}(  |:)", explained), what

for ofThreads in {1, threads}:
    reads = [figure for figure in figures if figure["what"] == "read" and figure["threads"] == ofThreads]
    assert [figure["bytes"] for figure in reads] == sorted(figure["bytes"] for figure in reads)
    assert reads[0]["bytes"] == ofThreads * 16 << 10

table = given["table"]
memory = table.pop("t.memory")
assert {"kHertz", "c.oneRowShare", "t.ownLaunchSec"} < set(table) and all(value > 0 for value in table.values())
assert memory[-1]["name"] == "dram" and memory[-1]["capacityBytes"] == 0
caches, names = memory[:-1], [level["name"] for level in memory]
assert [level["name"] for level in caches] == sorted(level["name"] for level in caches)
assert all(level["bytesPerSec"] > 0 for level in memory)
assert all(level["capacityBytes"] > 0 for level in caches)
assert [level["name"] for level in memory if level["ofDevice"]] == [n for n in names if n in ("l3", "dram")]
