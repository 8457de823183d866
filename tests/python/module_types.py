#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the package, its stub and a program that uses it against mypy.

    module_types.py --package FOLDER

Exits with 77 and a reason where there is no mypy.
"""

import argparse
import inspect
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

RIGHT = '''
import pathlib
import stepcast

forecast = stepcast.predict({"model": "gpt2", "cluster": "dgx-h100"}, tp=2, what_if=["nic=x2"])
seconds: float = forecast["step_time_s"]
row: dict[str, object] = forecast.rows[0]
plan = stepcast.plan(pathlib.Path("scenario.json"), progress=lambda now: now["elapsed_s"] < 9)
again = stepcast.predict(plan.scenario(0))
hints: list[str] = [problem.hint for problem in stepcast.lint(again["resolved"])]
names: list[str] = [str(one["name"]) for one in stepcast.models() + stepcast.clusters()]
passed: bool = bool(stepcast.check("mine.json"))
rows: list[dict[str, object]] = stepcast.compare({"a": {}, "b": "b.json"}).rows
'''
WRONG = {  # a line, and what is wrong with it
    "stepcast.predict(3)": "arg-type",
    "stepcast.plan({}, top='ten')": "arg-type",
    "stepcast.predict({}).raws": "attr-defined",
    "stepcast.plan({}).scenario('first')": "arg-type",
    "stepcast.check(1)": "arg-type",
    "stepcast.compare(3)": "arg-type",
}


def mypy(program, package, folder, file):
    """The exit code, and what it says."""
    done = subprocess.run([program, "--strict", "--cache-dir", "cache", str(file)], cwd=folder,
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "MYPYPATH": str(package.parent)})
    return done.returncode, done.stdout + done.stderr


def unlike_stub():
    """Names of the compiled module that its stub lacks, and the other way round."""
    import stepcast._core as core
    stub = (pathlib.Path(core.__file__).parent / "_core.pyi").read_text()
    declared = {line.split()[1].split("(")[0].rstrip(":") for line in stub.splitlines()
                if line.startswith(("def ", "class "))} - {"_Answer"}
    there = {name for name, value in inspect.getmembers(core)
             if not name.startswith("_") and (inspect.isclass(value) or callable(value))}
    return declared ^ there


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--package", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    program = shutil.which("mypy")
    if program is None:
        print("skipped: there is no mypy (scripts/install-deps.sh --all installs it)")
        return 77
    failures = []
    if unlike := unlike_stub():
        failures.append(f"the stub and the module differ in {sorted(unlike)}")
    with tempfile.TemporaryDirectory(prefix="stepcast-types-") as name:
        folder = pathlib.Path(name)
        package = arguments.package.resolve()
        code, told = mypy(program, package, folder, package)
        if code != 0:
            failures.append(told)
        (folder / "right.py").write_text(RIGHT)
        code, told = mypy(program, package, folder, "right.py")
        if code != 0:
            failures.append(told)
        for line, kind in WRONG.items():
            (folder / "wrong.py").write_text(f"import stepcast\n{line}\n")
            code, told = mypy(program, package, folder, "wrong.py")
            if code == 0 or f"[{kind}]" not in told:
                failures.append(f"{line}: mypy does not say [{kind}]: {told}")
    print("\n".join(failures) or f"{len(WRONG) + 2} runs of mypy, as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
