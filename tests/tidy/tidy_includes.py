# SPDX-License-Identifier: Apache-2.0
"""Who includes what: one-way layers, third-party headers, headers that stand alone."""

import concurrent.futures
import os
import re
import shutil
import subprocess

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
# These are slow to parse, and everybody who includes one of our headers would pay for it.
NOT_IN_HEADERS = ("boost/", "Eigen/", "CLI/", "nlohmann/", "gtest/", "benchmark/")
# Everybody else has core/json_tree.h.
KNOWN_TO_CORE_ALONE = "nlohmann/"


# The kernels of one kind of device each: what stands beside these folders is for all kinds.
BACKENDS = ("src/kernels/cpu/", "src/kernels/cuda/")


def includes(file):
    for number, line in enumerate(file.read_text().split("\n"), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1) == '"', found.group(2)


def check_directions(tree):
    layers = tree.layers()
    for file in tree.sources():
        layer = tree.layer_of(file)
        if layer is None:
            continue
        name = tree.name(file)
        if layer not in layers:
            yield f"{name}:1: CMakeLists.txt declares no layer {layer}"
            continue
        for number, ours, target in includes(file):
            if not ours:
                continue
            backend = next((b for b in BACKENDS if f"src/{target}".startswith(b)), None)
            if backend and layer == "kernels" and not name.startswith(backend):
                yield f"{name}:{number}: only {backend} knows {target}"
            other = tree.included_layer(target)  # of src/layer/part/ too
            if other not in layers:
                yield f'{name}:{number}: "{target}" is in no layer; ours are "layer/file.h"'
            elif other not in layers[layer]:
                yield f"{name}:{number}: {layer} must not include {other} ({target})"


def check_third_party(tree):
    for file in tree.sources():
        name = tree.name(file)
        if name.startswith(("src/core/", "tests/", "bench/", "cmake/")):
            continue
        for number, ours, target in includes(file):
            if not ours and target.startswith(KNOWN_TO_CORE_ALONE):
                yield f"{name}:{number}: <{target}> belongs into src/core; JSON is core/json_tree.h"
    for file in tree.with_suffix(".h"):
        name = tree.name(file)
        if name.startswith(("tests/", "bench/")):
            continue
        for number, ours, target in includes(file):
            if name.startswith("src/cli/") and target.startswith("CLI/"):
                continue
            if not ours and target.startswith(NOT_IN_HEADERS):
                yield f"{name}:{number}: <{target}> belongs into a .cpp file"


def proven_by_its_source(file):
    """Whether the build compiles this header as the first include of its own source."""
    source = file.with_suffix(".cpp")
    if not source.exists():
        return False
    first = next(includes(source), None)
    return first is not None and file.as_posix().endswith("/" + first[2])


# Texts that CMake gives to tests and benchmarks.
DEFINED_BY_THE_BUILD = ("STEPCAST_SOURCE_DIR", "STEPCAST_BINARY", "STEPCAST_FAULT_POINTS",
                        "STEPCAST_BUILD_TYPE", "STEPCAST_COMPILER")


def compiles_alone(tree, file):
    # Relative paths, so that ccache knows a header again in another clone.
    command = [*filter(None, [shutil.which("ccache")]), tree.compiler, "-std=c++20",
               "-fsyntax-only", "-x", "c++", "-w", "-I.", "-Isrc", "-Itests",
               *(f'-D{name}=""' for name in DEFINED_BY_THE_BUILD), tree.name(file)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tree.root)
    if run.returncode == 0:
        return None
    errors = [line for line in run.stderr.split("\n") if "error" in line]
    return errors[0] if errors else run.stderr.strip()


def check_headers_alone(tree):
    headers = [file for file in tree.with_suffix(".h") if not proven_by_its_source(file)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, error in zip(headers, pool.map(lambda f: compiles_alone(tree, f), headers)):
            if error:
                yield f"{tree.name(file)}:1: does not compile alone: {error}"
