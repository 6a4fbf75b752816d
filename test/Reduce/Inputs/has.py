"""has.py SCRIPT FUSEC TEXT: writes a command that exits with 0 where the Gir of its argument holds TEXT."""

import os
import shlex
import sys

script, fusec, text = sys.argv[1:]
with open(script, "w", encoding="utf-8") as file:
    file.write(f'#!/bin/sh\n{shlex.quote(fusec)} "$1" --stop-after=gir --dump-ir=gir | grep -qF {shlex.quote(text)}\n')
os.chmod(script, 0o755)
