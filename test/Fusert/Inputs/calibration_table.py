"""calibration_table.py TABLE.cpp FIELD... < fusert calibrate: its table has these fields and no others, each positive
and known by that name to the compiler's table, and its memories as that table has them; it tells which other seconds,
rates and shares of that table were not measured."""

import os
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    known = file.read()
text = sys.stdin.read()
table = text[text.index("\n  // ") :]
fields = re.findall(r"^  (?:constexpr double )?([\w.]+) = ([^{};]+);$", table, re.MULTILINE)
assert [name for name, _ in fields] == sys.argv[2:], fields
for name, value in fields:
    assert float(value) > 0, (name, value)
    assert not name.endswith("Share") or float(value) <= 1, (name, value)
    assert re.search(rf"\b{re.escape(name)} = ", known), name

with open(os.path.join(os.path.dirname(sys.argv[1]), "Target.h"), encoding="utf-8") as file:
    header = file.read()
doubles = re.findall(r"^ *double ([^;]*);", header, re.MULTILINE)
numbers = {name for names in doubles for name in re.findall(r"[a-z]\w+", names)}
has = {field for field in re.findall(r"\b([tc]\.\w+) = (?!0;)", known) if field[2:] in numbers}
noted = re.search(r"^note: not measured, the table's own: (.*)$", table, re.MULTILINE)[1].split()
assert not set(noted) & set(sys.argv[2:]) and set(noted) <= has, noted
assert has <= set(noted) | set(sys.argv[2:]), has

memory = re.search(r"^  t\.memory = \{(.*?)\};$", table, re.MULTILINE | re.DOTALL)[1]
levels = re.findall(r'\{"(\w+)", (\d+), ([^,}]+)(, true)?\}', memory)
assert len(levels) == memory.count("{") and levels[-1][0] == "dram"
for name, capacity, rate, of_device in levels:
    assert float(rate) > 0 and (int(capacity) > 0) == (name != "dram"), name
    assert bool(of_device) == (name in ("l3", "dram") or (name == "l2" and levels[0][0] == "shared")), name
    assert f'"{name}"' in known, name
