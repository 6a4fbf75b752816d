"""calibration.py THREADS < fusert calibrate --json: fails where a figure cannot be."""

import json
import sys

threads = int(sys.argv[1])
given = json.load(sys.stdin)
assert given["device"] and given["threads"] == threads and given["repetitions"] == 3
figures = given["figures"]
assert {figure["threads"] for figure in figures} == {1, threads}
for figure in figures:
    assert 0 < figure["lowest"] <= figure["median"] <= figure["highest"], figure

# The nearest memory is not slower than the farthest: the best of one against the worst of the other, since others may
# use this machine too.
for ofThreads in {1, threads}:
    reads = [figure for figure in figures if figure["what"] == "read" and figure["threads"] == ofThreads]
    assert [figure["bytes"] for figure in reads] == sorted(figure["bytes"] for figure in reads)
    assert reads[0]["bytes"] == ofThreads * 16 << 10
    assert max(figure["highest"] for figure in reads[:3]) >= reads[-1]["lowest"]

table = given["table"]
assert table["launchSec"] > 0 and table["deviceBarrierSec"] > 0 and table["blockBarrierSec"] == 0
assert table["memory"][-1]["name"] == "dram" and table["memory"][-1]["capacityBytes"] == 0
caches = table["memory"][:-1]
assert [level["name"] for level in caches] == sorted(level["name"] for level in caches)
assert all(level["bytesPerSec"] > 0 for level in table["memory"])
assert all(level["capacityBytes"] > 0 for level in caches)
