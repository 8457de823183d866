# SPDX-License-Identifier: Apache-2.0
"""A machine for rehearsals of the GPU campaign: its clock is pretended, and so are its programs.

A step takes as long as SECONDS says, in which the clock moves on and nothing is waited for. The
programs themselves either run (they are stand-ins, and end at once) or their results are made up.
"""

import json
import math
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/gpu-campaign"))

import machine  # noqa: E402

# These are rather too long. An H200 took 21 s for the tests, 124 for the calibration, 38 for the
# power, 2 to 29 for a validation, and 57 for PyTorch's steps of one scenario.
SECONDS = {"fits": 2, "doctor": 10, "tests": 180, "communication": 30, "memcheck": 120,
           "racecheck": 120, "calibrate-first": 190, "calibrate": 420, "power": 70,
           "validate": 65, "pytorch": 150, "pytorch-steps": 230}
# It runs kernels for real seconds, whatever the clock here says; tests of its own try it.
UNDER_A_REAL_CLOCK = ("power",)
CRASH_S = 8  # until a program crashes
KILL_S = 45  # until it takes the machine with it


class Killed(BaseException):
    """The machine is gone, without notice."""


def kind_of(step):
    """The key of SECONDS."""
    return max((kind for kind in SECONDS if step == kind or step.startswith(kind + "-")), key=len)


def seconds_of(step):
    return SECONDS[kind_of(step)]


def result_of(command):
    for word, following in zip(command, [*command[1:], ""]):
        if str(word) == "-o":
            return str(following)
        if str(word).startswith("--gtest_output=json:"):
            return str(word).split(":", 1)[1]
    raise AssertionError(f"{command} writes no result")


class PretendedMachine(machine.Machine):
    """`fault` tells of a step what goes wrong with it now: "hang" (it has to be killed), "crash",
    "kill" (of the machine), or None. Where programs run, results of steps that begin with one of
    `made_up` are made up."""

    def __init__(self, programs_run, kill_at=None, seconds=seconds_of, fault=lambda step: None,
                 made_up=UNDER_A_REAL_CLOCK):
        self.programs_run, self.kill_at, self.seconds = programs_run, kill_at, seconds
        self.made_up = made_up
        self.fault = fault
        self.time = 1000.0
        self.ran = []  # (step, seconds) of those that came to their end
        self.survives = None  # (from, to): copied when the machine is killed

    def now(self):
        return self.time

    def card(self):
        return super().card() if self.programs_run else ("NVIDIA H200", 143771 << 20)

    def pass_time(self, seconds):
        if self.kill_at is not None and self.time + seconds >= self.kill_at:
            if self.survives:
                shutil.copytree(*self.survives)
            raise Killed
        self.time += seconds

    def run(self, command, folder, log, limit_s, tick_s, on_tick):
        step = pathlib.Path(log).stem
        fault = self.fault(step)
        needed = {"hang": math.inf, "crash": CRASH_S, "kill": math.inf}.get(fault,
                                                                            self.seconds(step))
        if fault == "kill":
            self.kill_at = min(self.time + KILL_S, self.time + limit_s)
        left = min(needed, limit_s)
        while left > 0:
            self.pass_time(min(tick_s, left))
            left -= tick_s
            if left > 0:
                self.note_in_journal(step, folder)
                on_tick()
        if fault == "hang":
            self.pass_time(2 * machine.STOP_S)  # it heeds no signal
        if needed > limit_s:
            return None
        if fault == "crash":
            log.write_text("CUDA error: an illegal memory access was encountered\n")
            return -6
        self.ran.append((step, needed))
        if self.programs_run and not step.startswith(self.made_up):
            return super().run(command, folder, log, limit_s, tick_s, on_tick)
        (folder / result_of(command)).write_text(json.dumps({"made": "up"}))
        return 0

    def note_in_journal(self, step, folder):
        if step.startswith("calibrate") and not self.programs_run:
            journal = folder / "profile.json.journal/gpu/rank-0.jsonl"
            journal.parent.mkdir(parents=True, exist_ok=True)
            with journal.open("a") as file:
                file.write('{"key": "a shape"}\n')
