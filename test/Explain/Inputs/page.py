"""page.py PAGE.html BROWSER: opens the page in a headless browser, clicks through it, and prints what it then shows.

The clicks are a script behind the page's own in a copy of it; what they find is the title of the document."""

import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile

CLICKS = """
<script>
const seen = {}, at = s => document.querySelector(s), text = s => at(s).innerText;
const count = s => document.querySelectorAll(s).length;
try {
  seen.rows = count('#kernels tbody tr');
  seen.title = at('h1').textContent;
  seen.sizes = text('#sizes');
  seen.first = text('#right h2');
  document.querySelectorAll('#kernels tbody tr')[1].click();
  seen.second = text('#right h2');
  seen.selected = at('tr.on').dataset.kernel;
  seen.reasons = [...document.querySelectorAll('#right p.between')].map(e => e.innerText);
  seen.schedule = text('#right pre');
  seen.second_details = text('#right');
  seen.considered = text('#right').includes('(chosen)');
  at('#right a').click();
  seen.followed = text('#right h2');
  at('#tab-Graph').click();
  seen.boxes = count('#graph g'); seen.lines = count('#graph path');
  document.querySelectorAll('#graph g')[2].dispatchEvent(new MouseEvent('click'));
  seen.third = text('#right h2'); seen.marked = count('#graph g.on');
  at('#tab-Compare').click();
  seen.compared = count('#compare tbody tr');
  seen.plans = count('#plan option'); seen.onlyPlan = at('#plans').hidden;
  const plan = at('#plan');
  plan.value = seen.plans - 1; plan.dispatchEvent(new Event('change'));
  at('#tab-Kernels').click();
  seen.where = t.where || ''; seen.planSizes = text('#sizes'); seen.planSums = text('#sums');
  seen.planRows = count('#kernels tbody tr'); seen.planFirst = text('#right h2');
  const choice = at('#target');
  choice.value = 1; choice.dispatchEvent(new Event('change'));
  at('#tab-Kernels').click();
  seen.other = t.target; seen.otherRows = count('#kernels tbody tr');
} catch (e) { seen.error = String(e); }
document.documentElement.dataset.seen = JSON.stringify(seen);
</script>
"""

page, browser = pathlib.Path(sys.argv[1]), sys.argv[2]
source = page.read_text()
assert source.count("</body>") == 1
targets = json.loads(re.search(r'id="data">(.*?)</script>', source, re.DOTALL)[1])
with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder) / "page.html"
    copy.write_text(source.replace("</body>", CLICKS + "</body>"))
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
               "--virtual-time-budget=5000", "--dump-dom", copy.as_uri()]
    dom = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
seen = json.loads(html.unescape(re.search(r'data-seen="([^"]*)"', dom)[1]))
assert "error" not in seen, seen["error"]

kernels = targets[0]["kernels"]
heading = lambda i: f"Kernel {i + 1}: {kernels[i]['name']}"
graph = targets[0]["graph"]
assert seen["title"] == targets[0]["model"] + (f" (graph {graph})" if graph else "")
for symbol, size in targets[0]["symbols"].items():
    assert f"{symbol} = {size}" in seen["sizes"], seen["sizes"]
wanted = targets[0]["without_size"]
for symbol, sizes in wanted.items():
    assert f"--dim '{symbol}={sizes}:SIZE'" in seen["sizes"], seen["sizes"]
assert bool(seen["sizes"]) == bool(targets[0]["symbols"])
assert seen["rows"] == seen["boxes"] == len(kernels) > 3
assert (seen["first"], seen["second"], seen["selected"]) == (heading(0), heading(1), "1")
assert seen["considered"]
starts = [0, *kernels[1]["phase_starts"], None]
for number, (begin, end) in enumerate(zip(starts, starts[1:]), 1):
    label = f"equations of phase {number}" if len(starts) > 2 else "equations"
    assert f"\n{label} " + ", ".join(kernels[1]["equations"][begin:end]) in seen["second_details"], number
assert "its instructions ask for " in seen["second_details"]
for end, a in ((end, a) for end in ("from", "to") for a in targets[0]["apart"] if a[end] == 1):
    said = [reason for reason in seen["reasons"] if reason.startswith(a["tensor"]) and a["reason"] in reason]
    nodes = a["producer_nodes"] + a["consumer_nodes"]
    assert any(all(node in one for node in nodes) for one in said), (end, a, said)
assert seen["schedule"] == "\n".join(kernels[1]["schedules"][0])
assert seen["followed"] != heading(1)
assert seen["third"] == heading(2) and seen["marked"] == 1
inside = [a for a in targets[0]["apart"] if a["from"] is not None and a["to"] is not None]
assert seen["lines"] == len(inside) > 0
assert seen["compared"] == 1 + sum(k["unfused"]["launches"] > 1 for k in kernels) > 1
plans = [targets[0], *targets[0].get("other_plans", [])]
plan = plans[-1]
assert (seen["plans"], seen["onlyPlan"]) == (len(plans), len(plans) == 1)
assert (seen["where"], seen["planRows"]) == (plan.get("where") or "", len(plan["kernels"]))
assert seen["planFirst"] == f"Kernel 1: {plan['kernels'][0]['name']}"
for symbol, size in plan["symbols"].items():
    assert f"{symbol} = {size}" in seen["planSizes"], seen["planSizes"]
assert ("by the plan for all sizes" in seen["planSums"]) == bool(plan.get("where"))
assert seen["other"] == targets[1]["target"] and seen["otherRows"] == len(targets[1]["kernels"])
print(f"{len(kernels)} kernels: listed, drawn, compared, clicked through")
