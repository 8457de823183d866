#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets plans beside published runs that people tuned: same cluster, model, batch and release.

Usage: plans-beside-runs.py STEPCAST SUITE.json [SUITE.json ...] [--only TEXT] [--time-limit S]

For every model, cluster and batch of the suites, the fastest recorded run is taken, its layout is
left out, and `stepcast plan` searches. Prints a Markdown table: the planned over the recorded step.
Runs that the program cannot plan yet are counted, not hidden.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# The month of the code of runs whose suite does not state it, by how their ids begin: the sources are
# arXiv 1909.08053 and its repository (2020), arXiv 2104.04473, arXiv 2205.05198, Megatron-Core 0.8.
RELEASES = {"megatron-2020": "2020-06", "ptdp": "2021-04", "korthikanti": "2022-05",
            "mcore": "2024-07"}


def release_of(case):
    stated = case["scenario"]["training"].get("release")
    if stated:
        return stated
    return next((month for start, month in RELEASES.items() if case["id"].startswith(start)), None)


def open_scenario(case):
    """The scenario without its layout, and without what follows from the release."""
    scenario = json.loads(json.dumps(case["scenario"]))
    training = scenario["training"]
    training.pop("fused_gradient_accumulation", None)
    release = release_of(case)
    if release:
        training["release"] = release
    scenario["layout"] = {}
    return scenario


def tuned_runs(files, only):
    """The fastest recorded run of each model, cluster and batch."""
    best = {}
    for file in files:
        for case in json.loads(Path(file).read_text())["cases"]:
            step = case["measured"].get("step_time_s")
            scenario = case["scenario"]
            sixteen_bits = scenario["training"].get("precision", "bf16") in ("bf16", "fp16")
            if step is None or not sixteen_bits or "moe" in scenario["model"]:
                continue
            if only and only not in case["id"]:
                continue
            training = scenario["training"]
            key = json.dumps([scenario["model"], scenario["cluster"], training["global_batch"],
                              training["sequence_length"], training.get("framework")])
            if key not in best or step < best[key]["measured"]["step_time_s"]:
                best[key] = case
    return list(best.values())


def plan(stepcast, scenario, time_limit):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(scenario, file)
        file.flush()
        run = subprocess.run([stepcast, "plan", file.name, "--format", "json", "--top", "1", "--quiet",
                              "--time-limit", str(time_limit)], capture_output=True, text=True)
    if run.returncode != 0:
        reason = (run.stderr or "nothing fits").strip().splitlines()
        return None, reason[0]
    return json.loads(run.stdout)["plans"][0], None


def words(layout):
    parts = [f"tp {layout['tp']}", f"pp {layout['pp']}", f"dp {layout['dp']}"]
    if layout.get("virtual_stages", 1) > 1:
        parts.append(f"vpp {layout['virtual_stages']}")
    parts += [f"micro-batch {layout['micro_batch']}", f"zero {layout['zero']}"]
    recompute = layout.get("recompute", "none")
    mode = recompute if isinstance(recompute, str) else recompute["mode"]
    if mode != "none":
        parts.append(f"{mode} recompute")
    overlap = layout.get("overlap", {})
    on = [name for name, value in overlap.items() if value] if isinstance(overlap, dict) else []
    if on:
        parts.append("overlap " + "+".join(on))
    return ", ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stepcast")
    parser.add_argument("suites", nargs="+")
    parser.add_argument("--only", help="only runs whose id contains this text")
    parser.add_argument("--time-limit", type=float, default=60, help="seconds for one search")
    args = parser.parse_args()
    rows, refused = [], 0
    for case in tuned_runs(args.suites, args.only):
        found, reason = plan(args.stepcast, open_scenario(case), args.time_limit)
        if found is None:
            refused += 1
            print(f"{case['id']}: {reason}", file=sys.stderr)
            continue
        step, measured = found["prediction"]["step_time_s"], case["measured"]["step_time_s"]
        rows.append((step / measured, case["id"], measured, step, found["prediction"].get("mfu"),
                     words(found["layout"])))
    print("| run | recorded | planned | planned / recorded | MFU | first place |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for ratio, name, measured, step, mfu, layout in sorted(rows):
        share = f"{100 * mfu:.1f} %" if mfu is not None else ""
        print(f"| {name} | {measured:.4g} s | {step:.4g} s | {ratio:.2f} | {share} | {layout} |")
    if rows:
        ratios = [row[0] for row in rows]
        print(f"\n{len(rows)} runs: least {min(ratios):.2f}, median {statistics.median(ratios):.2f}, "
              f"most {max(ratios):.2f}. {refused} could not be planned.")


if __name__ == "__main__":
    main()
