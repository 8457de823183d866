#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of forecasts of 64 to 131,072 ranks, folded and unfolded, under callgrind
and writes them as a table and a picture.

    scripts/cost-against-ranks.py [--ranks N,N,...] [--unfolded-to N] [-o PICTURE]

Llama 3.1 405B with tp 8 and pp 8 on DGX H100, 16 micro-batches for each data replica. Instructions
are those of the whole process, so the smallest forecasts are mostly reading what is measured.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPCAST = ROOT / "build/release/stepcast"
PIPELINE = 8 * 8  # ranks of one data replica


def count(ranks, unfolded):
    """Instructions of one forecast."""
    replicas = ranks // PIPELINE
    words = ["predict", "--model", "llama-3.1-405b", "--cluster", f"dgx-h100x{ranks // 8}",
             "--global-batch", str(16 * replicas), "--seq", "8192", "--tp", "8", "--pp", "8"]
    with tempfile.TemporaryDirectory(prefix="stepcast-count-") as scratch:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={scratch}/out", STEPCAST,
             *words, *(["--unfolded"] if unfolded else []), "--data", ROOT, "--format", "json",
             "-o", f"{scratch}/answer"],
            capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    if done.returncode not in (0, 3):  # 3: the layout does not fit
        sys.exit(done.stderr)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def draw(rows, path):
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    matplotlib.rcParams.update({"svg.hashsalt": "stepcast", "font.size": 10})
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    for column, name, colour in ((1, "folded", "#0b6e99"), (2, "unfolded", "#b4531f")):
        points = [(row[0], row[column] / 1e6) for row in rows if row[column]]
        axes.plot(*zip(*points), marker="o", color=colour)
        axes.annotate(name, points[-1], xytext=(6, -3), textcoords="offset points", color=colour)
    axes.set(xscale="log", yscale="log", xlabel="ranks", ylabel="instructions (million)",
             title="One forecast, whole process")
    axes.set_xticks([row[0] for row in rows], [f"{row[0]:,}" for row in rows], rotation=30)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.set_xlim(right=rows[-1][0] * 3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="64,256,1024,4096,16384,65536,131072")
    parser.add_argument("--unfolded-to", type=int, default=16384)
    picture = ROOT / "docs/pictures/cost-against-ranks.svg"
    parser.add_argument("-o", "--output", default=str(picture))
    options = parser.parse_args()
    rows = []
    print("| ranks | folded | unfolded |\n|---:|---:|---:|")
    for ranks in map(int, options.ranks.split(",")):
        folded = count(ranks, False)
        unfolded = count(ranks, True) if ranks <= options.unfolded_to else None
        rows.append((ranks, folded, unfolded))
        shown = f"{unfolded / 1e6:,.0f}" if unfolded else ""
        print(f"| {ranks:,} | {folded / 1e6:,.0f} | {shown} |", flush=True)
    draw(rows, options.output)


if __name__ == "__main__":
    main()
