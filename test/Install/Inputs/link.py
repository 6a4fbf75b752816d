"""link.py <sources> <work>: builds the example against the runtime installed in <work>/prefix."""

import subprocess
import sys

sources, work = sys.argv[1:]


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(command)}\n{result.stdout}")
    return result.stdout.split()


run("cmake", "-G", "Ninja", "-S", sources, "-B", f"{work}/cmake", f"-DCMAKE_PREFIX_PATH={work}/prefix")
run("cmake", "--build", f"{work}/cmake")
compile = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"{sources}/example.c"]
rpath = f"-Wl,-rpath,{work}/prefix/lib"
run(*compile, *run("pkg-config", "--cflags", "--libs", "fusert"), rpath, "-o", f"{work}/example_pkgconfig")
flags = run("pkg-config", "--cflags", "fusert")
run(*compile, *flags, f"{work}/prefix/lib/libfusert.a", "-lm", "-lpthread", "-o", f"{work}/example_archive")
