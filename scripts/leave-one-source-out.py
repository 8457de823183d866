#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forecasts the runs of each source with what all the others have shown.

    scripts/leave-one-source-out.py [--bin build/release] [--update docs/accuracy.md]

A source is a publisher of recorded runs. Without it the errors that make intervals are those of the
other sources' runs, and the profiles are fitted without the tables of kernels that it measured on
the devices of its runs. The table says how many of its runs the intervals then cover, and what
their mean error is beside the shipped one. Host costs stay: those that were fitted to a source's
step times are in no summary. --update writes the table between its markers in a document.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN = "<!-- table of: scripts/leave-one-source-out.py -->"
END = "<!-- end of scripts/leave-one-source-out.py -->"
PUBLISHER = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z][\w-]*?)(_v\d[\w.]*)?(?![\w-])")
PAPER = re.compile(r"\b\d{4}\.\d{5}\b")


def publisher_of(source):
    """Names the publisher as src/validate/align.h does."""
    found = PUBLISHER.search(source)
    if found:
        return found[1]
    paper = PAPER.search(source)
    return paper[0] if paper else ""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "build/release"))
    parser.add_argument("--update", help="a document that has the markers")
    return parser.parse_args()


def data_folder(folder, profiles):
    for name in ("models", "topologies"):
        os.symlink(ROOT / name, folder / name)
    (folder / "profiles").mkdir()
    for profile in profiles.glob("*.json"):
        if profile.name != "measured_errors.json":
            os.symlink(profile, folder / "profiles" / profile.name)


def check(program, suite, data, errors=None):
    command = [program, "check", str(suite), "--data", str(data), "--format", "json", "--quiet"]
    if errors:
        command += ["--errors", str(errors)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["cases"]


def write_suite(path, cases):
    path.write_text(json.dumps({"stepcast_suite": 1, "name": path.stem, "cases": cases}))


def device_of(base):
    """The accelerator of a cluster."""
    cluster = json.loads((ROOT / f"topologies/clusters/{base}.json").read_text())
    return cluster["accelerator"]


def without_kernels(options, folder, source, devices):
    """Profiles fitted without what the source measured on these devices; None: it measured none."""
    dropped = False
    (folder / "published").mkdir()
    for table in (ROOT / "calibrate/published").glob("*.json"):
        head = json.loads(table.read_text())
        own = publisher_of(head.get("source", "")) == source and head.get("device") in devices
        dropped = dropped or own
        if not own:
            os.symlink(table, folder / "published" / table.name)
    if not dropped:
        return None
    (folder / "fitted").mkdir()
    subprocess.run([f"{options.bin}/stepcast-fit", "--published", str(folder / "published"),
                    "--out", str(folder / "fitted")], check=True, capture_output=True)
    os.symlink(ROOT / "calibrate/profiles/hosts.json", folder / "fitted/hosts.json")
    return folder / "fitted"


def judge(options, source, own, others):
    """Runs, mean error as shipped and left out, coverage."""
    program = f"{options.bin}/stepcast"
    bases = {case["scenario"]["cluster"]["base"] for case in own}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_suite(folder / "own.json", own)
        write_suite(folder / "others.json", others)
        devices = {device_of(base) for base in bases}
        profiles = without_kernels(options, folder, source, devices)
        (folder / "data").mkdir()
        data_folder(folder / "data", profiles or ROOT / "calibrate/profiles")
        errors = folder / "data/profiles/measured_errors.json"
        check(program, folder / "others.json", folder / "data", errors)
        left_out = check(program, folder / "own.json", folder / "data")
        (folder / "shipped").mkdir()
        data_folder(folder / "shipped", ROOT / "calibrate/profiles")
        shipped = check(program, folder / "own.json", folder / "shipped")
    mean = lambda cases: sum(abs(c["error"]["step_time"]) for c in cases) / len(cases)
    timed = lambda cases: [c for c in cases if "step_time" in c.get("error", {})
                           and not c.get("fitted")]
    left_out, shipped = timed(left_out), timed(shipped)
    covered = sum(c["covered"] for c in left_out) / len(left_out)
    return len(left_out), mean(shipped), mean(left_out), covered


def table_of(options):
    by_source = {}
    for path in sorted((ROOT / "suites").glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            by_source.setdefault(publisher_of(case["source"]), []).append(case)
    lines = ["| source left out | runs | mean error | as shipped | covered |",
             "| --- | ---: | ---: | ---: | ---: |"]
    for source, own in sorted(by_source.items()):
        others = [case for name, cases in by_source.items() if name != source for case in cases]
        runs, shipped, left_out, covered = judge(options, source, own, others)
        lines.append(f"| {source} | {runs} | {100 * left_out:.1f} % | {100 * shipped:.1f} % "
                     f"| {100 * covered:.1f} % |")
    return "\n".join(lines)


def main():
    options = arguments()
    table = table_of(options)
    if not options.update:
        print(table)
        return
    path = pathlib.Path(options.update)
    text = path.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    path.write_text(f"{text[:begin]}\n\n{table}\n\n{text[end:]}")


if __name__ == "__main__":
    main()
