#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same benchmarks of two builds in turns and prints the ratio of their CPU times.

    scripts/compare-benches.py OLD/build/bench NEW/build/bench [--rounds 7] [--only engine,plan]

A ratio is taken within each round, so that it holds when the machine's speed drifts; the median and
both ends are printed. 0.98 means that the second build takes 2 % less.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

PROGRAMS = ("engine", "predict", "plan")


def run(program, min_time):
    """CPU time by name of benchmark, in nanoseconds."""
    unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    output = subprocess.run([program, "--benchmark_format=json",
                             f"--benchmark_min_time={min_time}"],
                            check=True, capture_output=True, text=True).stdout
    return {row["name"]: row["cpu_time"] * unit[row["time_unit"]]
            for row in json.loads(output)["benchmarks"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default=",".join(PROGRAMS), help="programs, by comma")
    parser.add_argument("--min-time", type=float, default=0.3, help="seconds for each benchmark")
    arguments = parser.parse_args()
    print(f"{'benchmark':32s} {'old':>10s} {'new':>10s}   new / old")
    for name in arguments.only.split(","):
        programs = [folder / f"bench_{name}" for folder in (arguments.old, arguments.new)]
        for program in programs:
            if not program.exists():
                sys.exit(f"{program} does not exist: build it with scripts/build.sh bench")
        rounds = [[run(program, arguments.min_time) for program in programs]
                  for _ in range(arguments.rounds)]
        for benchmark in rounds[0][0]:
            if benchmark not in rounds[0][1]:
                continue
            old, new = ([pair[i][benchmark] for pair in rounds] for i in (0, 1))
            ratios = [b / a for a, b in zip(old, new)]
            print(f"{benchmark:32s} {statistics.median(old) / 1e3:7.5g} us "
                  f"{statistics.median(new) / 1e3:7.5g} us   {statistics.median(ratios):.3f} "
                  f"({min(ratios):.3f} to {max(ratios):.3f})", flush=True)


if __name__ == "__main__":
    main()
