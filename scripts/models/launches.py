"""Plans with other launches than a search's own."""

import os
import re

import bundle


def inOneLaunch(fusec, model, target, folder):
    """A dump of the model's plan for `target` in which one launch has all equations, at all sizes; what is compiled of
    it follows that."""
    plan = os.path.join(folder, "plan.txt")
    apart = ["--search-mode=none", "--stop-after=plan", "--dump-dir", folder]
    bundle.execute([fusec, model, "--target", target, *apart])
    with open(plan, encoding="utf-8") as file:
        text = file.read()
    launches = re.findall(r"^  launch \{ (.*?) \}.*\n", text, re.MULTILINE)
    text = re.sub(r"(^  launch \{ .*\n)+", f"  launch {{ {' '.join(launches)} }}\n", text, flags=re.MULTILINE)
    with open(plan, "w", encoding="utf-8") as file:
        file.write(text)
    return plan
