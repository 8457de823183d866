#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits what the host spends per operation to measured step times, and writes it to hosts.json.

Kernel and collective costs come from their own measurements and stay as they are; what a framework
spends in Python between kernels is in no kernel table, but small models are bound by it. Every
EVERY-th case of a suite is used for fitting and named under fitted_on, so that `stepcast check`
never mixes it with the others. The figure that is minimised is the mean of |ln(predicted/measured)|
with each term cut at ln 2, which a slow outlier cannot pull. Same inputs, same bytes out.

    scripts/fit-host.py --suite vtrain-a100-single --framework deepspeed --every 10
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAUNCH_US = range(10, 121, 10)
COLLECTIVE_US = range(20, 201, 20)
MICRO_BATCH_US = range(0, 10001, 500)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", required=True, help="name of a shipped suite")
    parser.add_argument("--framework", required=True, help="whose host costs to fit")
    parser.add_argument("--every", type=int, default=10, help="use each so-many-th case")
    parser.add_argument("--stepcast", default=str(ROOT / "build/release/stepcast"))
    parser.add_argument("--out", default=str(ROOT / "calibrate/profiles/hosts.json"),
                        help="the file to write, in place of the shipped one")
    return parser.parse_args()


def data_folder(folder, hosts, suite):
    """A data folder like the shipped one, with these host costs and this one suite."""
    for name in ("models", "topologies"):
        os.symlink(ROOT / name, folder / name)
    (folder / "profiles").mkdir()
    for profile in (ROOT / "calibrate/profiles").glob("*.json"):
        if profile.name != "hosts.json":
            os.symlink(profile, folder / "profiles" / profile.name)
    (folder / "suite.json").write_text(json.dumps(suite))
    write_hosts(folder / "profiles/hosts.json", hosts)


def write_hosts(path, hosts):
    lines = ['  "frameworks": {']
    rows = [f'    {json.dumps(name)}: {json.dumps(costs)}'
            for name, costs in hosts["frameworks"].items()]
    head = {key: value for key, value in hosts.items() if key != "frameworks"}
    text = json.dumps(head, indent=2)[:-2] + ",\n" + "\n".join(lines) + "\n"
    path.write_text(text + ",\n".join(rows) + "\n  }\n}\n")


def misfit(stepcast, folder):
    result = subprocess.run(
        [stepcast, "check", str(folder / "suite.json"), "--data", str(folder), "--format", "json",
         "--quiet"], capture_output=True, text=True, check=True)
    terms = []
    for case in json.loads(result.stdout)["cases"]:
        error = case.get("error", {}).get("step_time")
        if error is not None:
            terms.append(min(abs(math.log1p(error)), math.log(2)))
    return sum(terms) / len(terms)


def main():
    options = arguments()
    path = ROOT / "calibrate/profiles/hosts.json"
    hosts = json.loads(path.read_text())
    suite = json.loads((ROOT / "suites" / f"{options.suite}.json").read_text())
    suite["cases"] = suite["cases"][::options.every]
    costs = hosts["frameworks"][options.framework]
    costs.pop("fitted_on", None)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data_folder(folder, hosts, suite)

        def trial(launch, collective, micro_batch):
            costs.update(launch=f"{launch} us", collective=f"{collective} us",
                         micro_batch=f"{micro_batch} us")
            write_hosts(folder / "profiles/hosts.json", hosts)
            return misfit(options.stepcast, folder)

        # The three are fitted one after the other, in a few rounds: they hardly interact, except
        # launches with the cost of a micro-batch.
        launch, collective, micro_batch = 50, 60, 0
        for _ in range(4):
            launch = min(LAUNCH_US,
                         key=lambda value: (trial(value, collective, micro_batch), value))
            launch = min(range(launch - 8, launch + 9, 2),
                         key=lambda value: (trial(value, collective, micro_batch), value))
            collective = min(COLLECTIVE_US,
                             key=lambda value: (trial(launch, value, micro_batch), value))
            micro_batch = min(MICRO_BATCH_US,
                              key=lambda value: (trial(launch, collective, value), value))
        best = trial(launch, collective, micro_batch)
    costs["fitted_on"] = [case["id"] for case in suite["cases"]]
    write_hosts(pathlib.Path(options.out), hosts)
    print(f"{options.framework}: launch {launch} us, collective {collective} us, "
          f"micro-batch {micro_batch} us, mean log error "
          f"{best:.3f} on {len(suite['cases'])} cases of {options.suite}")


if __name__ == "__main__":
    main()
