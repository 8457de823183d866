#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole campaign with a pretended clock: whether slices of ten minutes are enough, what comes
back of each, and what is lost when one is killed."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest
from unittest import mock

import pretended_machine
from pretended_machine import Killed, PretendedMachine

import campaign
import steps

ROOT = pretended_machine.ROOT
HERE = pathlib.Path(__file__).resolve().parent
LEASE_S = 600
MOST_FILES = 8
MOST_BYTES = 16 << 20

TESTS = """#!/bin/sh
for word; do case $word in --gtest_output=json:*) echo '{}' >"${word#*:}";; esac; done
"""
TORCH = f"""import sys
sys.path.insert(0, {str(HERE)!r})
import shape_torch
sys.modules["torch"] = module = shape_torch.module()
module.cuda = shape_torch.cuda(milliseconds=4000.0)
"""
CARDS = {"h100": ("NVIDIA H100 80GB HBM3", 81559), "h200": ("NVIDIA H200", 143771)}


def program(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


class Rehearsal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.count = 0
        self.earlier = None  # the archive of the last slice

    def make_archive(self, stepcast, kernels=TESTS):
        """Programs as `prepare` packs them; these stand in for them."""
        packed = self.folder / "packed"
        program(packed / "bin/stepcast", f'#!/bin/sh\nexec "{stepcast}" "$@"\n')
        program(packed / "bin/test_kernels_cuda", kernels)
        program(packed / "bin/test_comm_nccl", TESTS)
        (packed / "lib").mkdir(exist_ok=True)
        (packed / "lib/needed.txt").write_text("libnowhere.so.1\n")
        archive = self.folder / "programs.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(packed / "bin", "bin")
            tar.add(packed / "lib", "lib")
        return archive

    def slice(self, machine, *words, code=None):
        """One call in a folder that is empty, as on a machine that is lent; returns its files."""
        self.count += 1
        out = self.folder / f"out-{self.count}"
        machine.survives = (out, self.folder / f"survived-{self.count}")
        arguments = [str(out), "--programs", str(self.archive), *words]
        if self.earlier:
            arguments += ["--resume", str(self.earlier)]
        began = machine.now()
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                self.code = campaign.run(campaign.parse(arguments), machine)
            except Killed:
                self.code = None
                out = machine.survives[1]
        self.said, self.took = said.getvalue(), machine.now() - began
        if code is not None:
            self.assertEqual(self.code, code, self.said)
        self.assertLessEqual(self.took, campaign.DEADLINE_S)
        self.assertLess(campaign.DEADLINE_S, LEASE_S)
        files = [file for file in out.rglob("*") if not file.is_dir()]
        self.assertLessEqual(len(files), MOST_FILES)
        self.assertTrue(all(file.parent == out for file in files))
        self.assertLess(max(file.stat().st_size for file in files), MOST_BYTES)
        self.earlier = out / "campaign.tar.gz"
        return files

    def kept(self):
        """Files of the last archive by name, as text."""
        with tarfile.open(self.earlier) as tar:
            return {member.name: tar.extractfile(member).read().decode()
                    for member in tar if member.isfile()}

    def done(self):
        return set(json.loads(self.kept().get("done.json", "{}")))


class MadeUp(Rehearsal):
    """Results are made up, so that many slices can be rehearsed."""

    def setUp(self):
        super().setUp()
        self.archive = self.make_archive("/nowhere/stepcast")
        sanitizer = mock.patch.object(shutil, "which", lambda name: f"/usr/bin/{name}")
        sanitizer.start()
        self.addCleanup(sanitizer.stop)

    def run_to_the_end(self, *words, most):
        slices = []
        while not slices or self.code == campaign.OUT_OF_TIME:
            self.assertLess(len(slices), most, self.said if slices else "")
            machine = PretendedMachine(programs_run=False)
            self.slice(machine, *words)
            slices.append([step for step, _ in machine.ran if step != "fits"])
        self.assertEqual(self.code, 0, self.said)
        return slices

    def test_each_slice_goes_on_where_the_last_ended(self):
        slices = self.run_to_the_end(most=12)
        steps = [step for ran in slices for step in ran]
        self.assertEqual(len(steps), len(set(steps)))  # none is repeated
        self.assertEqual(set(steps), self.done())
        self.assertLessEqual(max(sum(step.startswith("pytorch-steps-") for step in ran)
                                 for ran in slices), 2)

    def test_the_plan_brings_what_it_says(self):
        expected = {"tests": {"doctor", "tests", "communication", "memcheck", "racecheck"},
                    "calibration": {"calibrate"}}
        for name, steps in expected.items():
            machine = PretendedMachine(programs_run=False)
            self.slice(machine, "--slice", name, code=0)
            self.assertEqual({step for step, _ in machine.ran} - {"fits"}, steps)
        self.assertIn("profile.json", {file.name for file in self.earlier.parent.iterdir()})
        for name, most in (("validation", 2), ("pytorch", 6)):
            self.run_to_the_end("--slice", name, most=most)
        validated = {step for step in self.done() if step.startswith("validate-")}
        self.assertIn("validate-numerics", validated)

    def test_a_slice_without_what_it_needs_says_so(self):
        self.slice(PretendedMachine(programs_run=False), "--slice", "validation", code=75)
        self.assertIn("validate-numerics: waits for profile.json", self.said)
        self.assertEqual(self.done(), set())

    def test_a_killed_slice_loses_the_step_that_ran_and_no_other(self):
        for kill_at in range(1031, 1480, 37):
            with self.subTest(kill_at=kill_at):
                self.earlier = None
                machine = PretendedMachine(programs_run=False, kill_at=kill_at)
                self.slice(machine)
                self.assertIsNone(self.code)
                finished = {step for step, _ in machine.ran} - {"fits"}
                self.assertEqual(self.done(), finished)
                # The next slice begins with that step.
                machine = PretendedMachine(programs_run=False)
                self.slice(machine)
                self.assertFalse(finished & {step for step, _ in machine.ran})

    def test_a_killed_calibration_keeps_its_journal(self):
        self.slice(PretendedMachine(programs_run=False), "--slice", "tests", code=0)
        machine = PretendedMachine(programs_run=False, kill_at=1350)
        self.slice(machine, "--slice", "calibration")
        self.assertIsNone(self.code)
        lines = self.kept()["profile.json.journal/gpu/rank-0.jsonl"].splitlines()
        self.assertEqual(len(lines), (machine.now() - 1000) // campaign.TICK_S)
        self.slice(PretendedMachine(programs_run=False), "--slice", "calibration", code=0)
        self.assertGreater(len(self.kept()["profile.json.journal/gpu/rank-0.jsonl"].splitlines()),
                           len(lines))

    def test_a_step_that_takes_too_long_is_ended_and_then_gets_all_the_time_there_is(self):
        def slow(step):
            return 300 if step == "memcheck" else pretended_machine.seconds_of(step)
        first, second = (PretendedMachine(programs_run=False, seconds=slow) for _ in range(2))
        self.slice(first, "--slice", "tests", code=75)
        self.assertIn("memcheck: ended after 130 s", self.said)
        self.assertEqual(self.done(), {"doctor", "tests", "communication", "racecheck"})
        self.slice(second, "--slice", "tests", code=0)
        self.assertEqual(second.ran, [("memcheck", 300)])

    def test_a_step_is_not_begun_when_its_like_took_longer_than_what_is_left(self):
        for name in ("tests", "calibration"):
            self.slice(PretendedMachine(programs_run=False), "--slice", name, code=0)
        machine = PretendedMachine(programs_run=False)
        self.slice(machine, "--slice", "validation", code=75)  # eight of ten, of 65 s each
        self.assertEqual(machine.now() - 1000, 8 * 65)
        self.assertRegex(self.said, r"validate-[^:]*: 25 s are left, and it needs 65")

    def test_the_limits_of_the_steps_before_the_comparison_fit_into_their_slices(self):
        options = campaign.parse(["out"])
        scenarios = {"numerics": pathlib.Path("numerics.json")}
        for name in ("tests", "calibration"):
            limits = sum(step.limit_s for step in
                         steps.all_steps(pathlib.Path("bin"), scenarios, options)
                         if step.slice == name)
            self.assertLessEqual(limits, campaign.DEADLINE_S - campaign.CLOSING_S)

    def test_results_of_two_cards_are_not_mixed(self):
        self.slice(PretendedMachine(programs_run=False), "--slice", "tests", code=0)
        machine = PretendedMachine(programs_run=False)
        machine.card = lambda: ("NVIDIA H100 80GB HBM3", 81559 << 20)
        out = self.folder / "other"
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code = campaign.run(campaign.parse([
                str(out), "--programs", str(self.archive), "--resume", str(self.earlier)]), machine)
        self.assertEqual(code, 2)
        self.assertIn("the earlier results are of 'NVIDIA H200'", said.getvalue())


class WithStandIns(Rehearsal):
    """The program itself, with stand-ins for stepcast-gpu, PyTorch and the driver's tools."""

    def environment(self, card):
        name, mib = CARDS[card]
        tools = self.folder / "tools"
        program(tools / "nvidia-smi", f"#!/bin/sh\necho '{name}, {mib}'\n")
        program(tools / "compute-sanitizer", TESTS)
        (tools / "torch.py").write_text(TORCH)
        return {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(tools),
                "STEPCAST_GPU_PROGRAM": os.environ["FAKE_GPU"], "STEPCAST_FAKE_DEVICE": name}

    def rehearse(self, card):
        self.archive = self.make_archive(os.environ["STEPCAST"])
        with mock.patch.dict(os.environ, self.environment(card)):
            for _ in range(12):
                machine = PretendedMachine(programs_run=True)
                files = self.slice(machine)
                print(f"{card}, slice {self.count}: {self.took:.0f} s, {len(files)} files, exit "
                      f"code {self.code}: " + ", ".join(
                          step for step, _ in machine.ran if step != "fits"), flush=True)
                if self.code != campaign.OUT_OF_TIME:
                    return
        self.fail("twelve slices were not enough")

    def test_an_h100_gets_its_cluster_and_the_scenarios_that_fit(self):
        self.rehearse("h100")
        self.assertEqual(self.code, 0, self.said)
        kept = self.kept()
        self.assertEqual(json.loads(kept["card.json"])["cluster"], "dgx-h100")
        self.assertEqual(json.loads(kept["profile.json"])["device"], "h100-sxm5-80g")
        left_out = {name for name, why in json.loads(kept["fits.json"]).items() if why}
        self.assertEqual(left_out, {"gpt3-175b-tp2", "llama-3.1-405b-tp8"})
        self.assertIn("gpt3-175b-tp2, left out: it needs", kept["summary.md"])
        numerics = json.loads(kept["validate-numerics.json"])
        self.assertIn("loss_relative_error", numerics["numerics"])
        others = [json.loads(text) for name, text in kept.items()
                  if name.startswith("validate-") and name.endswith(".json")
                  and "numerics" not in name]
        self.assertGreaterEqual(len(others), 7)
        self.assertFalse(any("numerics" in one for one in others))
        self.assertIn("| llama-3.2-1b | 1 of 1 |", kept["summary.md"])
        kernels = json.loads(kept["pytorch.json"])["kernels"]
        self.assertEqual({row["kind"] for row in kernels}, {"gemm", "attention"})
        self.assertEqual(set(next(row for row in kernels if row["kind"] == "attention")
                             ["by_backend_s"]), {"cudnn", "flash"})


    def test_an_h200_gets_all_scenarios(self):
        self.rehearse("h200")
        self.assertEqual(self.code, 0, self.said)
        kept = self.kept()
        self.assertEqual(json.loads(kept["card.json"])["cluster"], "dgx-h200")
        self.assertEqual(set(json.loads(kept["fits.json"]).values()), {""})
        self.assertEqual(json.loads(kept["profile.json"])["device"], "h200-sxm5-141g")
        self.assertIn("pytorch-steps-gpt3-175b-tp2.json", kept)


class Signals(Rehearsal):
    """A process of its own, whose test of kernels waits until somebody ends it."""

    def test_a_signal_ends_the_step_and_leaves_the_archive(self):
        mark = self.folder / "mark"
        self.archive = self.make_archive(
            os.environ["STEPCAST"],
            f'#!/bin/sh\necho $$ >"{mark}.new"\nmv "{mark}.new" "{mark}"\nexec sleep 10000\n')
        tools = self.folder / "tools"
        program(tools / "nvidia-smi", "#!/bin/sh\necho 'NVIDIA H200, 143771'\n")
        out = self.folder / "out"
        process = subprocess.Popen(
            [str(ROOT / "scripts/gpu-campaign.sh"), "run", str(out), "--programs",
             str(self.archive)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
        while not mark.exists():
            self.assertIsNone(process.poll(), process.stdout.read() if process.poll() else "")
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate()
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, said)
        with self.assertRaises(ProcessLookupError):
            os.kill(int(mark.read_text()), 0)
        self.earlier = out / "campaign.tar.gz"
        self.assertEqual(self.done(), {"doctor"})
        self.assertIn("ended by signal 15", self.kept()["campaign.log"])
        self.assertIn("summary.md", {file.name for file in out.iterdir()})


if __name__ == "__main__":
    unittest.main()
