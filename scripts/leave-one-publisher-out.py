#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forecasts the runs of each publisher with what all the others have shown.

    scripts/leave-one-publisher-out.py [--bin build/release] [--update docs/accuracy.md]

Suites say who ran their cases. Without a publisher the errors that make intervals are those of
other people's runs (`stepcast check --publisher-left-out`), the profiles are fitted without the
tables of kernels that the publisher measured on the devices of its runs (`stepcast-fit`), and the
host costs without its step times (fit-host.py). Collectives take no part: `check` prices each
without itself, and with --publisher-left-out without what their publisher measured. The tables say
how many of its runs the intervals then cover, and what the mean error is beside the shipped one;
publishers of fewer than five runs share a row. Answers are kept under --cache until the program or
data change. --update writes the tables between their markers in a document, and the picture that
it shows.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN = "<!-- table of: scripts/leave-one-publisher-out.py -->"
END = "<!-- end of scripts/leave-one-publisher-out.py -->"
PICTURE = ROOT / "docs/pictures/publishers-left-out.svg"
REPOSITORY = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z][\w-]*?)(_v\d[\w.]*)?(?![\w-])")
FEW = 5  # runs, below which a share of them tells little


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "build/release"))
    parser.add_argument("--cache", default=str(ROOT / "build/left-out"))
    parser.add_argument("--update", help="a document that has the markers")
    return parser.parse_args()


def repository_of(source):
    """Names the repository as src/validate/align.h does."""
    found = REPOSITORY.search(source)
    return found[1] if found else ""


def key_of(*parts):
    """A name for an answer that depends on these files and texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, pathlib.Path) else part.encode())
    return digest.hexdigest()[:16]


def data_folder(folder, profiles):
    folder.mkdir()
    for name in ("models", "topologies"):
        os.symlink(ROOT / name, folder / name)
    os.symlink(profiles, folder / "profiles")
    return folder


def check(program, suite, data, *flags):
    done = subprocess.run([program, "check", str(suite), "--data", str(data), "--format", "json",
                           "--quiet", *flags], capture_output=True, text=True, check=True)
    return [case for case in json.loads(done.stdout)["cases"]
            if "step_time" in case.get("error", {}) and not case.get("fitted")]


def device_of(case):
    """The accelerator of the case's cluster."""
    base = case["scenario"]["cluster"]["base"]
    return json.loads((ROOT / f"topologies/clusters/{base}.json").read_text())["accelerator"]


def host_fit_without(publisher):
    """The framework whose host costs were fitted to steps of the publisher, and the suite of others
    that has most runs of it; None where there is no such framework."""
    suites = [json.loads(path.read_text()) for path in sorted((ROOT / "suites").glob("*.json"))]
    own = {case["id"] for suite in suites if suite.get("publisher") == publisher
           for case in suite["cases"]}
    hosts = json.loads((ROOT / "calibrate/profiles/hosts.json").read_text())
    for framework, host in hosts["frameworks"].items():
        if not own & set(host.get("fitted_on", [])):
            continue
        runs = {suite["name"]: sum(case["scenario"]["training"].get("framework") == framework
                                   for case in suite["cases"])
                for suite in suites if suite.get("publisher") not in (None, publisher)}
        return framework, max(runs, key=runs.get)
    return None


def profiles_without(options, folder, publisher, cases):
    """Shipped profiles; fitted anew where the publisher measured kernels of its own machines or
    steps that host costs were fitted to."""
    repositories = {repository_of(case["source"]) for case in cases}
    devices = {device_of(case) for case in cases}
    others = folder / "published"
    others.mkdir()
    dropped = False
    for table in (ROOT / "calibrate/published").glob("*.json"):
        head = json.loads(table.read_text())
        own = (repository_of(head.get("source", "")) in repositories
               and head.get("device") in devices)
        dropped = dropped or own
        if not own:
            os.symlink(table, others / table.name)
    shipped = ROOT / "calibrate/profiles"
    host_fit = host_fit_without(publisher)
    if not dropped and host_fit is None:
        return shipped
    fitted = folder / "fitted"
    fitted.mkdir()
    kept = ("hosts.json", "measured_errors.json")
    for profile in shipped.glob("*.json"):
        if not dropped or profile.name in kept:
            os.symlink(profile, fitted / profile.name)
    if dropped:
        subprocess.run([f"{options.bin}/stepcast-fit", "--published", str(others), "--out",
                        str(fitted)], check=True, capture_output=True)
    if host_fit is not None:
        framework, suite = host_fit
        (fitted / "hosts.json").unlink()
        subprocess.run([str(ROOT / "scripts/fit-host.py"), "--suite", suite, "--framework",
                        framework, "--every", "1", "--stepcast", f"{options.bin}/stepcast",
                        "--out", str(fitted / "hosts.json")], check=True, capture_output=True)
    return fitted


def judge(options, publisher, cases):
    """The publisher's runs as shipped and left out, as two lists of cases."""
    program = f"{options.bin}/stepcast"
    files = [path for folder in ("calibrate/profiles", "calibrate/published", "suites", "models",
                                 "topologies") for path in sorted((ROOT / folder).rglob("*.json"))]
    key = key_of(pathlib.Path(program), pathlib.Path(f"{options.bin}/stepcast-fit"),
                 pathlib.Path(__file__), ROOT / "scripts/fit-host.py", json.dumps(cases), *files)
    kept = pathlib.Path(options.cache) / f"{key}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        suite = folder / "own.json"
        suite.write_text(json.dumps({"stepcast_suite": 1, "name": "own", "publisher": publisher,
                                     "cases": cases}))
        shipped = data_folder(folder / "shipped", ROOT / "calibrate/profiles")
        left_out = data_folder(folder / "left_out",
                               profiles_without(options, folder, publisher, cases))
        answer = [check(program, suite, shipped),
                  check(program, suite, left_out, "--publisher-left-out")]
    # Costs that were fitted to other runs left out name those: the same cases count in both.
    names = {case["id"] for case in answer[0]}
    answer[1] = [case for case in answer[1] if case["id"] in names]
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(answer))
    return answer


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def error(cases):
    return mean(abs(case["error"]["step_time"]) for case in cases)


def inside(cases):
    return mean(case["covered"] for case in cases)


def half_width(cases):
    return mean((case["predicted"]["step_time_high_s"] - case["predicted"]["step_time_low_s"])
                / 2 / case["predicted"]["step_time_s"] for case in cases)


def percent(value):
    return f"{100 * value:.1f} %"


def row(name, shipped, left_out):
    figures = [error(shipped), error(left_out), inside(shipped), inside(left_out),
               half_width(shipped), half_width(left_out)]
    return f"| {name} | {len(left_out)} | {' | '.join(map(percent, figures))} |"


def kind_of(case):
    tags = case["tags"]
    return "experts" if "moe" in tags else "dense, fp8" if "fp8" in tags else "dense, 16 bits"


def tables_of(judged):
    """Both tables, and what the picture shows of each publisher."""
    head = ["| {} | {} | error as shipped | left out | inside as shipped | left out "
            "| half-width as shipped | left out |", "| --- |" + " ---: |" * 7]
    by_publisher = [head[0].format("publisher left out", "runs"), head[1]]
    few, shown = ([], []), []
    for name, (shipped, left_out) in judged:
        if len(left_out) < FEW:
            few[0].extend(shipped)
            few[1].extend(left_out)
            continue
        by_publisher.append(row(name, shipped, left_out))
        shown.append((name, left_out))
    if few[1]:
        by_publisher.append(row("others, each left out", *few))
        shown.append(("others", few[1]))
    everything = [case for _, (shipped, _) in judged for case in shipped], [
        case for _, (_, left_out) in judged for case in left_out]
    by_publisher.append(row("all runs", *everything))
    by_kind = ["| each publisher weighs the same | publishers | error as shipped | left out |",
               "| --- | ---: | ---: | ---: |"]
    for kind in ("dense, 16 bits", "dense, fp8", "experts"):
        parts = [[[case for case in cases if kind_of(case) == kind] for cases in both]
                 for _, both in judged]
        parts = [both for both in parts if both[1]]
        by_kind.append(f"| {kind} | {len(parts)} | {percent(mean(error(b[0]) for b in parts))} "
                       f"| {percent(mean(error(b[1]) for b in parts))} |")
    return "\n".join(by_publisher) + "\n\n" + "\n".join(by_kind), shown


def picture_of(shown):
    """Shares inside as bars, and the band of 85 to 95 %."""
    left, wide, line = 130, 420, 24
    high = line * len(shown) + 46
    x = lambda share: left + wide * share
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + wide + 110} {high}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{left + wide + 110}" height="{high}" fill="#ffffff"/>',
           f'<rect x="{x(.85):.0f}" y="8" width="{wide / 10:.0f}" height="{line * len(shown)}" '
           'fill="#dfeef3"/>']
    for at, (name, cases) in enumerate(shown):
        y = 8 + line * at
        out.append(f'<text x="{left - 8}" y="{y + 16}" text-anchor="end">{name}</text>')
        out.append(f'<rect x="{left}" y="{y + 5}" width="{wide * inside(cases):.0f}" height="14" '
                   'fill="#0b6e99"/>')
        out.append(f'<text x="{left + wide + 8}" y="{y + 16}">{100 * inside(cases):.0f} %, '
                   f'± {100 * half_width(cases):.0f} %</text>')
    below = 8 + line * len(shown)
    for tick in (0, .5, .85, .95):
        out.append(f'<text x="{x(tick):.0f}" y="{below + 16}" text-anchor="middle">'
                   f'{100 * tick:.0f} %</text>')
    out.append(f'<text x="{left}" y="{below + 34}">runs inside the 90 % interval, their publisher '
               'left out, and its mean half-width</text></svg>')
    return "\n".join(out) + "\n"


def main():
    options = arguments()
    by_publisher = {}
    for path in sorted((ROOT / "suites").glob("*.json")):
        suite = json.loads(path.read_text())
        for case in suite["cases"]:
            if "collective" in case:
                continue  # priced by its own curves, which `check` leaves out by themselves
            name = case.get("publisher") or suite["publisher"]
            by_publisher.setdefault(name, []).append(case)
    judged = [(name, judge(options, name, cases)) for name, cases in sorted(by_publisher.items())]
    judged = [(name, both) for name, both in judged if both[1]]
    table, shown = tables_of(judged)
    if not options.update:
        print(table)
        return
    path = pathlib.Path(options.update)
    text = path.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    path.write_text(f"{text[:begin]}\n\n{table}\n\n{text[end:]}")
    PICTURE.write_text(picture_of(shown))


if __name__ == "__main__":
    main()
