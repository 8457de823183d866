#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the planner takes from a slider's move to its pictures, 70B on 64 GPUs: no test, since a
busy machine is slower.

    slider_times.py --web build/web [--batch 128] [--moves 40]
"""

import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "html"))
import browser  # noqa: E402  pylint: disable=wrong-import-position


def wait(page, expression):
    while not page.evaluate(f"Boolean({expression})"):
        time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--web", type=pathlib.Path, required=True)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--moves", type=int, default=40)
    arguments = parser.parse_args()
    with browser.Browser(browser.program(), timeout=300) as page:
        start = time.monotonic()
        page.open(arguments.web / "planner.html", 1280, 900)
        wait(page, "document.body.dataset.answers > 0")
        first_s = time.monotonic() - start
        page.evaluate(f"scenario.training.global_batch = {arguments.batch}; changed()")
        wait(page, "!asked && !newer")
        took_ms = []
        for move in range(arguments.moves):
            before = int(page.evaluate("Number(document.body.dataset.answers)"))
            slider, to = (("tp", 4), ("recompute", "'full'"), ("tp", 8),
                          ("recompute", "'none'"))[move % 4]
            page.evaluate(f"setAt('layout.{slider}', {to}); settle('{slider}'); changed()")
            wait(page, f"Number(document.body.dataset.answers) > {before} && !asked")
            assert page.evaluate("document.getElementById('errors').hidden"), "is legal"
            took_ms.append(float(page.evaluate("document.body.dataset.took")))
    took_ms.sort()
    print(f"first forecast after {first_s:.2f} s; a move: least {took_ms[0]:.0f} ms, "
          f"median {statistics.median(took_ms):.0f} ms, nine in ten "
          f"{took_ms[int(0.9 * len(took_ms))]:.0f} ms ({len(took_ms)} moves, batch "
          f"{arguments.batch})")


if __name__ == "__main__":
    main()
