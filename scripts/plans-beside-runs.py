#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets plans beside published runs that people tuned: same cluster, model, batch and release.

Usage: plans-beside-runs.py STEPCAST SUITE.json [SUITE.json ...] [--only TEXT] [--time-limit S]

For every model, cluster and batch of the suites, the fastest recorded run is taken, its layout is
left out, and `stepcast plan` searches. With experts each dispatcher is tried, beside another
micro-batch and not, and the best plan of all is shown. Prints a Markdown table: the planned over
the recorded step. Runs that the program cannot plan yet are counted, not hidden.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

def open_scenario(case):
    """The scenario without its layout, and without what follows from the release."""
    scenario = json.loads(json.dumps(case["scenario"]))
    scenario["training"].pop("fused_gradient_accumulation", None)
    scenario["layout"] = {}
    return scenario


def tuned_runs(files, only):
    """The fastest recorded run of each model, cluster and batch."""
    best = {}
    for file in files:
        for case in json.loads(Path(file).read_text())["cases"]:
            step = case["measured"].get("step_time_s")
            scenario = case["scenario"]
            if step is None:
                continue
            if only and only not in case["id"]:
                continue
            training = scenario["training"]
            model = json.loads(json.dumps(scenario["model"]))
            if "moe" in model:
                model["moe"].pop("dispatcher", None)
                model["moe"].pop("dispatcher_sms", None)
            key = json.dumps([model, scenario["cluster"], training["global_batch"],
                              training["sequence_length"], training.get("framework"),
                              training.get("precision")])
            if key not in best or step < best[key]["measured"]["step_time_s"]:
                best[key] = case
    return list(best.values())


DISPATCHERS = ("alltoall", "deepep", "hybridep")


def with_dispatchers(scenario):
    """The scenario; for a model with experts, one for each way of tokens to them: each dispatcher,
    beside another micro-batch and not."""
    if "moe" not in scenario["model"]:
        return [scenario]
    recorded = scenario["model"]["moe"].get("dispatcher", "alltoall")
    out = []
    for dispatcher in DISPATCHERS:
        for beside in (False, True):
            out.append(json.loads(json.dumps(scenario)))
            moe = out[-1]["model"]["moe"]
            moe["dispatcher"] = dispatcher
            if dispatcher != recorded:
                moe.pop("dispatcher_sms", None)
            if beside:
                out[-1]["layout"] = {"overlap": {"ep": True}}
    return out


def best_plan(stepcast, scenario, time_limit):
    """The fastest plan and its dispatcher, or no plan and why."""
    best, why = None, None
    for one in with_dispatchers(scenario):
        found, reason = plan(stepcast, one, time_limit)
        why = why or reason
        if found is None:
            continue
        if best is None or step_of(found) < step_of(best[0]):
            best = (found, one["model"].get("moe", {}).get("dispatcher"))
    return (best, None) if best else (None, why)


def step_of(found):
    return found["prediction"]["step_time_s"]


def plan(stepcast, scenario, time_limit):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(scenario, file)
        file.flush()
        run = subprocess.run(
            [stepcast, "plan", file.name, "--format", "json", "--top", "1", "--quiet",
             "--time-limit", str(time_limit)], capture_output=True, text=True)
    if run.returncode != 0:
        reason = (run.stderr or "nothing fits").strip().splitlines()
        return None, reason[0]
    plans = json.loads(run.stdout)["plans"]
    return (plans[0], None) if plans else (None, "the time limit came before a plan that fits")


def words(layout):
    parts = [f"tp {layout['tp']}", f"pp {layout['pp']}", f"dp {layout['dp']}"]
    if layout.get("ep", 1) > 1:
        parts.append(f"ep {layout['ep']}")
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
        best, reason = best_plan(args.stepcast, open_scenario(case), args.time_limit)
        if best is None:
            refused += 1
            print(f"{case['id']}: {reason}", file=sys.stderr)
            continue
        found, dispatcher = best
        step, measured = step_of(found), case["measured"]["step_time_s"]
        layout = words(found["layout"]) + (f", {dispatcher}" if dispatcher else "")
        rows.append((step / measured, case["id"], measured, step, found["prediction"].get("mfu"),
                     layout))
    print("| run | recorded | planned | planned / recorded | MFU | first place |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for ratio, name, measured, step, mfu, layout in sorted(rows):
        share = f"{100 * mfu:.1f} %" if mfu is not None else ""
        print(f"| {name} | {measured:.4g} s | {step:.4g} s | {ratio:.2f} | {share} | {layout} |")
    if rows:
        ratios = [row[0] for row in rows]
        print(f"\n{len(rows)} runs: least {min(ratios):.2f}, "
              f"median {statistics.median(ratios):.2f}, most {max(ratios):.2f}. "
              f"{refused} could not be planned.")


if __name__ == "__main__":
    main()
