#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs the built module as a wheel, installs it into a new environment without a network, and
tries it there, outside the source tree.

    try_wheel.py --source FOLDER --build FOLDER --version VERSION --cmake PROGRAM

Exits with 77 and a reason where this Python makes no environments.
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time

FIRST_FORECAST_LIMIT_S = 60  # with the installation
TRIAL = """
import json, pathlib, sys, stepcast, stepcast._core
core = pathlib.Path(stepcast._core.__file__)
assert core.is_relative_to(sys.prefix), core
maps = pathlib.Path("/proc/self/maps").read_text()
assert str(core.parent / "libfmt") in maps, "the wheel brings the libraries that it needs"
forecast = stepcast.predict(model="llama-3.1-70b", cluster="dgx-h100x4", global_batch=64, tp=8,
                            pp=4)
assert forecast["fits"] and "pipeline" in forecast.pictures()
print(json.dumps({"version": stepcast.__version__, "step_time_s": forecast["step_time_s"]}))
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          check=False, **options)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def pack(arguments, stage, output):
    run(arguments.cmake, "--install", arguments.build, "--component", "python", "--strip",
        "--prefix", stage)
    source = arguments.source
    return run(sys.executable, source / "bindings/python/pack_wheel.py", stage, "--version",
               arguments.version, "--readme", source / "docs/python.md", "--license",
               source / "LICENSE", "--output", output).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--cmake", required=True)
    arguments = parser.parse_args()
    if importlib.util.find_spec("ensurepip") is None:
        print("skipped: this Python has no ensurepip (package python3-venv)")
        return 77
    with tempfile.TemporaryDirectory(prefix="stepcast-wheel-") as name:
        folder = pathlib.Path(name)
        wheel = pack(arguments, folder / "stage", folder / "first")
        again = pack(arguments, folder / "stage", folder / "second")
        assert pathlib.Path(wheel).read_bytes() == pathlib.Path(again).read_bytes(), "other bytes"
        run(sys.executable, "-m", "venv", folder / "venv")
        python = folder / "venv/bin/python"
        clean = {key: value for key, value in os.environ.items()
                 if not key.startswith(("PYTHON", "STEPCAST", "PIP"))}
        begin = time.monotonic()
        run(python, "-m", "pip", "install", "--no-index", "--no-deps",
            "--disable-pip-version-check", wheel, env=clean)
        told = run(python, "-c", TRIAL, env=clean, cwd=folder)
        took = time.monotonic() - begin
        assert took < FIRST_FORECAST_LIMIT_S, f"{took:.0f} s"
        size = pathlib.Path(wheel).stat().st_size / 1e6
        print(f"{pathlib.Path(wheel).name}: {size:.1f} MB, installed and forecast in {took:.1f} s: "
              f"{told.strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
