# SPDX-License-Identifier: Apache-2.0
"""Programs reach files, clocks, memory and threads only by calls that fault_points.cpp can fail.

    imports.py --library LIBRARY PROGRAM...

Looks at the functions of the C library that each program, and the C++ library that it uses, take at
run time. Every one that touches files, clocks, memory or threads must be in the library, or stand
below with the reason why it need not fail.
"""
import argparse
import re
import subprocess
import sys

# Functions of files, clocks, memory and threads have such names.
SUBJECT = re.compile(
    r"^(f?open(?!blas)|creat|f?read|p?readv?|p?writev?|fwrite|f?put[cs]$|f?get[cs]$|"
    r"f?(?:data)?sync|rename|link|unlink|mk|tmp|f?truncate|posix_fallocate|fallocate|sendfile|"
    r"splice|copy_file|mmap|munmap|malloc|calloc|realloc|aligned|memalign|posix_memalign|valloc|"
    r"clock|time$|"
    r"gettimeofday|ftime|nanosleep|pthread_create|thrd|syscall|io_|aio_|vfs|fdopen|freopen|"
    r"opendir|fdopendir|getline|getdelim|f?scanf|lio_|"
    r"pipe|dup|socket|eventfd|epoll_create|inotify|signalfd|timerfd|memfd|shm_)")
NEED_NOT_FAIL = {
    "unlink": "removing is the answer to a fault, and a name that stays is found by the sweep",
    "unlinkat": "likewise",
    "linkat": "likewise", "link": "of the C++ library: no program of ours calls it",
    "gettimeofday": "of clocks of the C++ library that no program of ours reads",
    "readlink": "tells where the program is: without it nothing is found, which is an error",
    "readdir": "the C library reads folders; opening one can fail",
    "readdir64": "likewise",
    "fputs": "to standard error alone", "fputc": "to standard error alone",
    "fputwc": "to standard error alone",
    "putc": "to standard streams, of the C++ library", "putwc": "likewise", "getc": "likewise",
    "getwc": "likewise", "ungetc": "likewise", "fgetc": "likewise",
    "getcwd": "cannot fail where a program can start",
    "getline": "of the C++ library, which reads by read",
    "clock_gettime": "is moved, and does not fail", "clock": "processor time moves by itself",
    "clock_nanosleep": "a longer sleep is an ordinary one", "nanosleep": "likewise",
    "time": "the day in a profile: a wrong one is no error",
    "mktime": "computes",
    "syscall": "of the C++ library: waits for threads, and getrandom",
    "fdopen": "of the C++ library, for files that are open already",
    "truncate": "of the C++ library: no program of ours calls it",
    "truncate64": "likewise", "ftruncate64": "likewise",
    "dup2": "of a child before it is another program, over descriptors that it has",
    "sendfile": "of the C++ library: copies of files", "sendfile64": "likewise",
}


def symbols(file, which):
    text = subprocess.run(["nm", "-D", f"--{which}-only", file], capture_output=True, text=True,
                          check=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines()}


def cxx_library(program):
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.search(r"libstdc\+\+\S* => (\S+)", text).group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    can_fail = symbols(arguments.library, "defined")
    wrong, looked = [], 0
    for file in [*arguments.programs, cxx_library(arguments.programs[0])]:
        for name in sorted(symbols(file, "undefined")):
            if name.startswith("_Z") or not SUBJECT.match(name):
                continue
            looked += 1
            if name not in can_fail and name not in NEED_NOT_FAIL:
                wrong.append(f"{file}: calls {name}, which no fault can meet: add it to "
                             "fault_points.cpp")
    if looked < 20:
        wrong.append(f"only {looked} calls were looked at")
    print("\n".join(wrong) or f"{looked} calls can fail, or need not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
