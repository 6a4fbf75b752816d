# Shared by the commands in scripts/: sourced, never run. Sets `root` and `venv`, changes into the project's folder.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/build/venv
cd "$root"

say() { printf '== %s\n' "$*" >&2; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Two compiler processes on the largest files need about 1.5 GiB: fewer jobs where memory is short.
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ { print int($2 / 1048576 / 1.5) }' /proc/meminfo)
  echo $((memory < 1 ? 1 : memory < cores ? memory : cores))
}

# fusecBuild <preset> [target...]: set-up, configure and build into build/<preset>.
fusecBuild() {
  local preset=$1
  shift
  "$root/scripts/setup"
  say "configure ($preset)"
  cmake --preset "$preset" >"$root/build/configure-$preset.log" || {
    cat "$root/build/configure-$preset.log" >&2
    die "cmake failed"
  }
  say "build ($preset)"
  cmake --build "$root/build/$preset" --parallel "$(jobs)" ${1:+--target "$@"}
}
