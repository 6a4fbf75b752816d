"""expect-exit.py CODE PROGRAM ARGUMENT...: fails unless the program exits with CODE; prints what it printed."""

import subprocess
import sys

done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
print(done.stdout, end="")
if done.returncode != int(sys.argv[1]):
    sys.exit(f"exit code {done.returncode} instead of {sys.argv[1]}")
