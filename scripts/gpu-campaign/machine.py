# SPDX-License-Identifier: Apache-2.0
"""The machine that a campaign runs on: its clock, its processes, its card and its libraries.

The rehearsal (tests/gpu_campaign) puts another one in its place.
"""

import contextlib
import glob
import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

STOP_S = 10  # for a program to end by itself once it is told to
MIB = 1 << 20


class NoCard(Exception):
    """There is no GPU here, or none that this can name."""


class Machine:
    """Time, and programs that end in time."""

    def now(self):
        return time.monotonic()

    def run(self, command, folder, log, limit_s, tick_s, on_tick):
        """The exit code, or None where the program was ended after `limit_s`.

        It works in `folder`; its output goes to the file `log`. While it runs, on_tick() is called
        every `tick_s` seconds.
        """
        end = self.now() + limit_s
        with log.open("ab") as output:
            try:
                # A group of its own, which can be ended, but no session: what a lease ends at its
                # limit must not go on.
                process = subprocess.Popen([str(word) for word in command], cwd=folder,
                                           stdin=subprocess.DEVNULL, stdout=output,
                                           stderr=subprocess.STDOUT, preexec_fn=begin_program)
            except OSError as error:
                output.write(f"{command[0]}: {error.strerror}\n".encode())
                return 127
        try:
            while True:
                left = end - self.now()
                if left <= 0:
                    return None
                try:
                    return process.wait(min(tick_s, left))
                except subprocess.TimeoutExpired:
                    on_tick()
        finally:
            stop(process)

    def card(self):
        """(name, bytes of memory) of the first GPU, as its driver tells them."""
        command = [find_program("nvidia-smi") or "nvidia-smi", "--query-gpu=name,memory.total",
                   "--format=csv,noheader,nounits", "--id=0"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoCard(f"nvidia-smi: {error}") from error
        words = [word.strip() for word in done.stdout.strip().split(",")]
        if done.returncode != 0 or len(words) != 2 or not words[1].isdigit():
            raise NoCard("nvidia-smi names no GPU: " + (done.stderr or done.stdout).strip())
        return words[0], int(words[1]) * MIB


def begin_program():
    os.setpgrp()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would lie among the results


def stop(process):
    """Ends a program, if it still runs, and what it has started: PyTorch's compilers, which would
    keep the processors busy beside the next step."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(STOP_S)
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_S)


def find_program(name):
    """Its path, or None; programs of CUDA and of the driver need not be on PATH."""
    beside = [glob.glob(f"/usr/local/{folder}/bin/{name}") for folder in ("cuda*", "nvidia")]
    return shutil.which(name) or next((file for found in beside for file in sorted(found)), None)


def words_of(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def mounting(words):
    """How a card is built in: "sxm", "pcie", "nvl", or "" where its name does not say."""
    for word in words:
        if word.startswith(("sxm", "pcie")):
            return word[:3] if word.startswith("sxm") else "pcie"
        if word == "nvl":
            return word
    return ""


def bytes_of(text):
    number, unit = text.split()
    return float(number) * {"MiB": MIB, "GiB": 1 << 30, "GB": 1e9}[unit]


def accelerator_of(card, memory_bytes, topologies):
    """The name of the accelerator's file that describes the card; raises NoCard.

    Of those whose name fits, it is the nearest by memory. Where the card does not say how it is
    built in, it is an SXM card, as "NVIDIA H100 80GB HBM3" is.
    """
    said = words_of(card)
    joined = set(said) | {a + b for a, b in zip(said, said[1:])}
    found = []
    for file in sorted((topologies / "accelerators").glob("*.json")):
        own = words_of(file.stem)
        forms = {mounting(said), mounting(own)} - {""}
        if own[0] not in joined or len(forms) == 2:
            continue
        distance = abs(math.log(bytes_of(json.loads(file.read_text())["memory"]) / memory_bytes))
        found.append((round(distance, 1), mounting(own) != (mounting(said) or "sxm"), file.stem))
    if not found:
        raise NoCard(f"topologies/accelerators describes no '{card}'")
    return min(found)[2]


def cluster_of(accelerator, topologies):
    """A cluster of that accelerator, NVIDIA's own before others; raises NoCard."""
    found = []
    for file in sorted((topologies / "clusters").glob("*.json")):
        if json.loads(file.read_text()).get("accelerator") == accelerator:
            found.append((not file.stem.startswith("dgx"), file.stem))
    if not found:
        raise NoCard(f"topologies/clusters has none of {accelerator}: name one with --cluster")
    return min(found)[1]


def shipped_profile(cluster, topologies, profiles):
    """The file that is shipped for a cluster's accelerator, or None."""
    described = topologies / "clusters" / f"{cluster}.json"
    if not described.exists():
        return None
    accelerator = json.loads(described.read_text()).get("accelerator", "")
    name = json.loads((topologies / "accelerators" / f"{accelerator}.json").read_text()).get(
        "profile") if accelerator else None
    file = profiles / f"{name}.json"
    return file if name and file.exists() else None


def library_folders(names, environment=os.environ):
    """Folders that have the shared libraries `names`, where pip or the toolkit put them; and those
    of the names that none has, nor the loader's own folders.

    A name may be a pattern. Pip's come before the system's, because they are PyTorch's: steps and
    kernels are compared with PyTorch's, and then call the same cuBLASLt and cuDNN.
    """
    searched = environment.get("LD_LIBRARY_PATH", "").split(":")
    for folder in sys.path:
        searched += sorted(glob.glob(f"{folder}/nvidia/*/lib"))
    searched += sorted(glob.glob("/usr/local/cuda*/lib64"), reverse=True)
    searched += sorted(glob.glob("/usr/local/cuda*/targets/*/lib"), reverse=True)
    searched += sorted(glob.glob("/usr/local/cuda*/lib"), reverse=True)
    searched += glob.glob("/usr/lib/*-linux-gnu") + ["/usr/local/lib", "/opt/nvidia/lib"]
    out, missing = [], []
    for name in names:
        folder = next((folder for folder in filter(None, searched)
                       if any(pathlib.Path(folder).glob(name))), None)
        (missing if folder is None else out).append(folder or name)
    return list(dict.fromkeys(out)), missing
