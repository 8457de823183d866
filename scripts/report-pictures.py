#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the pictures of docs/reports.md with a headless Chromium.

    report-pictures.py [--bin build/release] [--out docs/pictures]
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "html"))
import browser  # noqa: E402

FORECAST = ["predict", "--model", "llama-3.1-70b", "--cluster", "dgx-h100x8", "--global-batch",
            "32", "--seq", "8192", "--tp", "8", "--pp", "4"]
PLAN = ["plan", "--model", "llama-3.1-70b", "--cluster", "dgx-h100x8", "--global-batch", "64",
        "--seq", "8192", "--top", "6"]
OFFERS = ["plan", "--model", "llama-3.1-8b", "--global-batch", "256", "--clusters",
          "dgx-h100,dgx-a100-80g", "--gpus", "16..64", "--tokens", "200B", "--deadline", "14d",
          "--objective", "cost"]
SCALING = ["compare", "--model", "llama-3.1-8b", "--cluster", "dgx-h100x2", "--global-batch",
           "256", "--seq", "4096", "--vary", "cluster.nodes=1,2,4,8,16", "--vary",
           "layout.tp=1,2,4", "--scaling", "strong"]
CHECK = ["check", "all"]

# Name, command, theme, and the last section to show.
PICTURES = [("forecast-light", FORECAST, "light", "pipeline"),
            ("plan-light", PLAN, "light", "replayed-section"),
            ("offers-light", OFFERS, "light", "offers-chart"),
            ("scaling-dark", SCALING, "dark", "points-section"),
            ("check-dark", CHECK, "dark", "scatter")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "pictures")
    arguments = parser.parse_args()
    if browser.program() is None:
        sys.exit("report-pictures: needs one of " + ", ".join(browser.NAMES))
    arguments.out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser.Browser(browser.program()) as page:
        for name, words, theme, last in PICTURES:
            report = pathlib.Path(folder) / f"{name}.html"
            subprocess.run([arguments.bin / "stepcast", *words, "--html", report], check=True,
                           stdout=subprocess.DEVNULL)
            page.open(report, width=1024, height=800, scheme=theme)
            height = page.evaluate(f"document.getElementById('{last}').getBoundingClientRect()"
                                   ".bottom + scrollY")
            picture = arguments.out / f"{name}.png"
            page.screenshot(picture, clip=(0, 0, 1024, height + 8))
            if shutil.which("pngquant"):  # a quarter of the size
                subprocess.run(["pngquant", "--force", "--strip", "--output", picture, "48",
                                picture], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
