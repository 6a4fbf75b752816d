"""Where bytes lie that a core works on again and again: in one of the caches that it reaches, or in memory."""

import glob
import os

DRAM = "DRAM-bound"
PARTLY = "in part cached"
PARTLY_FASTER = 1.25  # than memory's copies, beyond their noise: of 32 MiB beside a cache of 32 MiB 1.6 to 2.1


def of(threads, cpu="/sys/devices/system/cpu/cpu0"):
    """[(name, bytes)] of the data caches that a core reaches, inwards first, as the system tells of it (Linux, sysfs):
    its own times the threads, those that it shares with other cores once, and so the last one, whoever has it."""

    def told(*path):
        with open(os.path.join(cpu, *path), encoding="ascii") as file:
            return file.read().strip()

    core = told("topology", "thread_siblings_list")
    found = {}
    for index in map(os.path.basename, glob.glob(os.path.join(cpu, "cache", "index*"))):
        if told("cache", index, "type") != "Instruction":
            size = int(told("cache", index, "size").removesuffix("K")) * 1024
            found[int(told("cache", index, "level"))] = size, told("cache", index, "shared_cpu_list") == core
    last = max(found)
    return [(f"L{level}", size * (threads if own and level != last else 1))
            for level, (size, own) in sorted(found.items())]


def place(touched, threads, ofMemory, cpu="/sys/devices/system/cpu/cpu0"):
    """The smallest of these caches that takes so many bytes in, or DRAM: more than the last one has. `ofMemory`: a copy
    of so many bytes, as a multiple of the rate at which memory copies; where it is faster, that cache holds a part. Of
    twice its size it holds nothing."""
    caches = of(threads, cpu)
    beyond = PARTLY if ofMemory > PARTLY_FASTER and touched < 2 * caches[-1][1] else DRAM
    return next((name for name, size in caches if touched <= size), beyond)
