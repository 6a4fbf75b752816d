"""What scripts/models/caches.py, in the folder of the first argument, says of systems made in that of the second."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])

import caches

CORE = "0,8"


def system(name, shared_last):
    cpu = os.path.join(sys.argv[2], name)
    files = {"topology/thread_siblings_list": CORE}
    for index, told in enumerate([(1, "Data", "48K", CORE), (1, "Instruction", "32K", CORE),
                                  (2, "Unified", "1024K", CORE), (3, "Unified", "32768K", shared_last)]):
        for file, text in zip(("level", "type", "size", "shared_cpu_list"), told):
            files[f"cache/index{index}/{file}"] = str(text)
    for file, text in files.items():
        path = os.path.join(cpu, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as out:
            out.write(text + "\n")
    return cpu


for name, shared_last in (("shared last", "0-15"), ("own last", CORE)):
    cpu = system(name.replace(" ", "-"), shared_last)
    print(f"{name}: 1 thread {caches.of(1, cpu)}, 2 threads {caches.of(2, cpu)}")
    assert {caches.place(32 << 20, threads, 1, cpu) for threads in (1, 2)} == {"L3"}
    assert {caches.place((32 << 20) + 1, threads, 1.2, cpu) for threads in (1, 2)} == {caches.DRAM}
    assert {caches.place((32 << 20) + 1, threads, 1.6, cpu) for threads in (1, 2)} == {caches.PARTLY}
    assert {caches.place(64 << 20, threads, 1.6, cpu) for threads in (1, 2)} == {caches.DRAM}
print("32 MiB lie in L3, a byte more is DRAM-bound, or in part cached where its copy is faster")
