#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a notebook without a browser; the copy with its outputs goes into a folder.

    run_notebook.py NOTEBOOK --output FOLDER

Exits 1 when a cell fails, and 77 with a reason where no Python has what a notebook needs.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
MODULES = "nbconvert, ipykernel, matplotlib"
CELL_ERROR = "An error occurred while executing the following cell"
COLOR = re.compile(r"\x1b\[[0-9;]*m")
START_LIMIT_S = 120  # until the kernel answers
CELL_LIMIT_S = 240  # until a cell that hangs is a failure


def interpreter():
    """A Python that has MODULES: the one that runs this, the first on the path or the system's."""
    named = (sys.executable, shutil.which("python3"), "/usr/bin/python3")
    for python in dict.fromkeys(filter(None, named)):
        try:
            found = subprocess.run([python, "-c", f"import {MODULES}"], capture_output=True,
                                   check=False)
        except OSError:
            continue
        if found.returncode == 0:
            return python
    return None


def run(python, notebook, output):
    # Nothing of the user's settings, and nothing written among them.
    with tempfile.TemporaryDirectory(prefix="stepcast-jupyter-") as own:
        folders = {name: own for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR",
                                          "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR")}
        environment = {**os.environ, **folders, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        environment.pop("MPLBACKEND", None)  # another backend would leave no figures in the copy
        done = subprocess.run(
            [python, "-m", "nbconvert", "--to", "notebook", "--execute", str(notebook),
             "--output-dir", str(output), "--log-level", "WARN",
             f"--ExecutePreprocessor.startup_timeout={START_LIMIT_S}",
             f"--ExecutePreprocessor.timeout={CELL_LIMIT_S}"],
            env=environment, stderr=subprocess.PIPE, text=True, check=False)
    message = COLOR.sub("", done.stderr)
    # Print a failed cell and its own traceback, without Jupyter's frames before it.
    print(message[max(0, message.find(CELL_ERROR)):], end="", file=sys.stderr)
    return done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("notebook", type=pathlib.Path)
    parser.add_argument("--output", required=True, type=pathlib.Path, help="folder")
    arguments = parser.parse_args()
    python = interpreter()
    if python is None:
        print(f"skipped: no python3 has {MODULES} (scripts/install-deps.sh installs them)")
        return SKIPPED
    arguments.output.mkdir(parents=True, exist_ok=True)
    return 1 if run(python, arguments.notebook, arguments.output) else 0


if __name__ == "__main__":
    sys.exit(main())
