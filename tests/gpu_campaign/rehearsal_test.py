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
from pretended_machine import UNDER_A_REAL_CLOCK, Killed, PretendedMachine

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
    place = None  # of temporary files: that of the system

    def setUp(self):
        there = mock.patch.object(tempfile, "tempdir", self.place)
        there.start()
        self.addCleanup(there.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.count = 0
        self.earlier = None  # the archive of the last slice

    def make_archive(self, stepcast, kernels=TESTS):
        """Programs as `prepare` packs them; these stand in for them."""
        packed = self.folder / "packed"
        program(packed / "bin/stepcast", f'#!/bin/sh\nexec "{stepcast}" "$@"\n')
        program(packed / "bin/test_kernels_gpu", kernels)
        program(packed / "bin/test_comm_nccl", TESTS)
        (packed / "lib").mkdir(exist_ok=True)
        (packed / "lib/needed.txt").write_text("libnowhere.so.1\n")
        archive = self.folder / "programs.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(packed / "bin", "bin")
            tar.add(packed / "lib", "lib")
        return archive

    def slice(self, machine, *words, code=None, lost=False):
        """One call in a folder that is empty, as on a machine that is lent; returns its files.

        Where the machine is killed, OUT survives, unless it is lost.
        """
        self.count += 1
        out = self.folder / f"out-{self.count}"
        machine.survives = None if lost else (out, self.folder / f"survived-{self.count}")
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
                if lost:
                    return []
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


class MadeUpResults(Rehearsal):
    """Results are made up, so that many slices can be rehearsed."""

    # In memory, where it is: a slice writes dozens of small files, and here no program runs in it.
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    def setUp(self):
        super().setUp()
        self.archive = self.make_archive("/nowhere/stepcast")
        sanitizer = mock.patch.object(shutil, "which", lambda name: f"/usr/bin/{name}")
        sanitizer.start()
        self.addCleanup(sanitizer.stop)

    def run_to_the_end(self, *words, most):
        slices = []
        with mock.patch.object(campaign, "TICK_S", LEASE_S):  # archives on the way are not needed
            while not slices or self.code == campaign.OUT_OF_TIME:
                self.assertLess(len(slices), most, self.said if slices else "")
                machine = PretendedMachine(programs_run=False)
                self.slice(machine, *words)
                slices.append([step for step, _ in machine.ran if step != "fits"])
        self.assertEqual(self.code, 0, self.said)
        return slices


class MadeUp(MadeUpResults):
    def test_each_slice_goes_on_where_the_last_ended(self):
        slices = self.run_to_the_end(most=12)
        steps = [step for ran in slices for step in ran]
        self.assertEqual(len(steps), len(set(steps)))  # none is repeated
        self.assertEqual(set(steps), self.done())
        self.assertLessEqual(max(sum(step.startswith("pytorch-steps-") for step in ran)
                                 for ran in slices), 2)

    def test_the_first_two_slices_bring_everything_once(self):
        slices = self.run_to_the_end("--slice", "first", most=2)
        self.assertEqual([step for ran in slices for step in ran], [
            "doctor", "tests", "calibrate-first", "validate-numerics", "validate-llama-3.2-1b",
            "pytorch-steps-llama-3.2-1b", "pytorch"])
        self.assertIn("profile.json", {file.name for file in self.earlier.parent.iterdir()})
        for words in ("a profile of this card: by calibrate-first",
                      "a validated step: by validate-numerics, validate-llama-3.2-1b",
                      "a comparison with PyTorch: by pytorch-steps-llama-3.2-1b, pytorch"):
            self.assertIn(words, self.said)
            self.assertIn(words, self.kept()["summary.md"])

    def test_what_follows_is_wider_and_then_sanitized(self):
        self.run_to_the_end("--slice", "first", most=2)
        wider = [step for ran in self.run_to_the_end("--slice", "wider", most=9) for step in ran]
        self.assertEqual(wider[:2], ["communication", "calibrate"])
        self.assertEqual(len([step for step in wider if step.startswith("validate-")]), 10)
        for name in steps.CALIBRATED_ALONE:
            self.assertFalse({f"validate-{name}", f"pytorch-steps-{name}"} & set(wider))
        self.assertEqual(len([step for step in wider if step.startswith("pytorch-steps-")]), 8)
        self.assertEqual(self.run_to_the_end("--slice", "sanitizers", most=1),
                         [["memcheck", "racecheck"]])
        self.assertEqual(self.run_to_the_end(most=1), [[]])

    def test_without_a_profile_the_shipped_one_serves_until_there_is_one(self):
        fails = PretendedMachine(programs_run=False, fault=lambda step: "crash" if
                                 step == "calibrate-first" else None)
        self.slice(fails, "--slice", "first", code=75)
        profiles = {step: one.get("profile") for step, one in
                    json.loads(self.kept()["done.json"]).items()}
        self.assertEqual(profiles["validate-numerics"], "h200-sxm5-141g")
        self.assertIsNone(profiles["doctor"])
        self.assertIn("takes h200-sxm5-141g, the profile that is shipped", self.said)
        self.run_to_the_end("--slice", "first", most=3)
        done = json.loads(self.kept()["done.json"])
        self.assertEqual({done[step]["profile"] for step in done if "profile" in done[step]},
                         {"own"})

    def test_a_killed_slice_loses_the_step_that_ran_and_no_other(self):
        for kill_at in range(1031, 1480, 89):
            with self.subTest(kill_at=kill_at):
                self.earlier = None
                machine = PretendedMachine(programs_run=False, kill_at=kill_at)
                self.slice(machine)
                self.assertIsNone(self.code)
                finished = {step for step, _ in machine.ran} - {"fits"}
                self.assertEqual(self.done(), finished)
                # The next slice goes on with the other steps.
                machine = PretendedMachine(programs_run=False)
                self.slice(machine)
                self.assertFalse(finished & {step for step, _ in machine.ran})

    def test_a_killed_calibration_keeps_its_journal(self):
        machine = PretendedMachine(programs_run=False, kill_at=1350)
        self.slice(machine)
        self.assertIsNone(self.code)
        lines = self.kept()["profile.json.journal/gpu/rank-0.jsonl"].splitlines()
        spent = 1350 - 1000 - 2 * pretended_machine.SECONDS["fits"] - sum(
            pretended_machine.SECONDS[step] for step in ("doctor", "tests"))
        self.assertEqual(len(lines), spent // campaign.TICK_S)
        self.slice(PretendedMachine(programs_run=False))
        self.slice(PretendedMachine(programs_run=False))
        self.assertIn("calibrate-first", self.done())
        self.assertGreater(len(self.kept()["profile.json.journal/gpu/rank-0.jsonl"].splitlines()),
                           len(lines))

    def test_a_step_that_takes_too_long_is_ended_and_then_gets_twice_its_time(self):
        def slow(step):
            return 300 if step == "tests" else pretended_machine.seconds_of(step)
        ran = []
        for _ in range(3):
            machine = PretendedMachine(programs_run=False, seconds=slow)
            self.slice(machine, "--slice", "first")
            ran += machine.ran
            if machine.ran[-1] == ("tests", 300):
                break
        self.assertEqual(ran[-1], ("tests", 300))  # after all others
        self.assertEqual(self.code, 0)
        self.assertIn("tests, run 1 of 2: hung: ended after 200 s", self.kept()["summary.md"])
        self.assertIn("tests-run-1.log", self.kept())

    def test_a_step_that_fails_twice_is_given_up_and_the_call_says_so(self):
        def fault(step):
            return "crash" if step == "doctor" else None
        for code in (75, 1):
            self.slice(PretendedMachine(programs_run=False, fault=fault), "--slice", "first",
                       code=code)
        self.assertIn("doctor: is given up: crashed: exit code -6 after 8 s: CUDA error",
                      self.kept()["campaign.log"])
        machine = PretendedMachine(programs_run=False)
        self.slice(machine, "--slice", "first", code=1)
        self.assertEqual(machine.ran, [])

    def test_a_step_that_the_end_of_a_slice_cuts_off_is_no_fault(self):
        # 125 s: two forecasts, the doctor, and 111 s for tests that take 180 s.
        self.slice(PretendedMachine(programs_run=False), "--deadline", "150", code=75)
        self.assertIn("tests: ended after 111 s: the slice is over", self.said)
        self.assertEqual(json.loads(self.kept()["tries.json"])["tests"][-1]["end"], "cut off")
        self.assertIn("tests: 0 s are left, and it needs 112", self.said)
        machine = PretendedMachine(programs_run=False)
        self.slice(machine, "--slice", "first")
        self.assertEqual(machine.ran[0], ("tests", 180))

    def test_a_step_is_not_begun_when_its_like_took_longer_than_what_is_left(self):
        self.run_to_the_end("--slice", "first", most=2)
        self.slice(PretendedMachine(programs_run=False), "--slice", "wider", code=75)
        machine = PretendedMachine(programs_run=False)
        self.slice(machine, "--slice", "wider", "--deadline", "180", code=75)
        self.assertEqual([seconds for _, seconds in machine.ran], [65, 65])
        self.assertRegex(self.said, r"validate-[^:]*: 25 s are left, and it needs 65")

    def test_a_log_that_overflows_does_not_fill_the_archive(self):
        def noisy(machine):
            run = machine.run

            def shouting(command, folder, log, *rest):
                code = run(command, folder, log, *rest)
                if log.stem == "tests":
                    log.write_bytes(os.urandom(30 << 20) + b"the last line\n")
                return code
            machine.run = shouting
            return machine
        self.slice(noisy(PretendedMachine(programs_run=False)), "--slice", "first")
        with tarfile.open(self.earlier) as tar:
            text = tar.extractfile("tests.log").read()
        self.assertTrue(text.endswith(b"the last line\n"))
        self.assertLess(len(text), 1 << 20)

    def test_results_of_two_cards_are_not_mixed(self):
        self.slice(PretendedMachine(programs_run=False), "--slice", "first", code=75)
        machine = PretendedMachine(programs_run=False)
        machine.card = lambda: ("NVIDIA H100 80GB HBM3", 81559 << 20)
        out = self.folder / "other"
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code = campaign.run(campaign.parse([
                str(out), "--programs", str(self.archive), "--resume", str(self.earlier)]), machine)
        self.assertEqual(code, 2)
        self.assertIn("the earlier results are of 'NVIDIA H200'", said.getvalue())


class Faults(MadeUpResults):
    """A hang, a crash and a kill at every step, once and always, to the end of three slices."""

    def three_slices(self, step, kind, always, lost=False):
        """How often the fault struck."""
        self.earlier = None
        struck = 0

        def fault(name):
            nonlocal struck
            if name != step or (struck and not always):
                return None
            struck += 1
            return kind
        for _ in range(3):
            self.slice(PretendedMachine(programs_run=False, fault=fault), lost=lost)
        return struck

    def goals(self):
        """Reads what there is, and why anything is missing, from the log of the last slice."""
        told = json.loads(self.kept()["goals.json"])
        self.assertEqual(set(told), set(steps.GOALS))
        return told

    def missing(self, step):
        """Goals that did not come back; of each the words say that `step` is why."""
        out = set()
        for goal, words in self.goals().items():
            if self.code is not None:
                self.assertIn(words, self.kept()["campaign.log"])
            if words.startswith("no "):
                out.add(goal)
                self.assertRegex(words, rf"{step} (hung|crashed|killed)[^;]*, then "
                                        r"(hung|crashed|killed|running)")
        return out

    def rehearse(self, names, kind, always):
        counts = dict.fromkeys(steps.GOALS, 0)
        for step in names:
            with self.subTest(step=step, kind=kind, always=always):
                self.assertGreater(self.three_slices(step, kind, always), 0)
                missing = self.missing(step)
                # Only a calibration that never ends leaves the card without a profile: the wider
                # one, which would bring one too, is never reached. One that crashes at once leaves
                # the time for it.
                unavoidable = always and kind != "crash" and step == "calibrate-first"
                self.assertEqual(missing, {"profile"} if unavoidable else set())
                for goal in set(steps.GOALS) - missing:
                    counts[goal] += 1
        print(f"{kind}, {'always' if always else 'once'}, at {len(names)} steps; came back: " +
              ", ".join(f"{goal} {count}" for goal, count in counts.items()), flush=True)

    def test_every_step(self):
        # Other steps do not begin within three slices; of steps that are alike the first stands
        # for all.
        names = {}
        for _ in range(3):
            machine = PretendedMachine(programs_run=False)
            self.slice(machine)
            for step, _ in machine.ran:
                names.setdefault(pretended_machine.kind_of(step), step)
        del names["fits"]
        self.assertGreaterEqual(len(names), 8)
        with mock.patch.object(campaign, "TICK_S", LEASE_S):  # archives on the way are not needed
            for kind in ("hang", "crash", "kill"):
                for always in (False, True):
                    self.rehearse(names.values(), kind, always)

    def test_a_slice_of_which_nothing_comes_back_costs_one_slice(self):
        for step in ("doctor", "tests", "calibrate-first", "validate-numerics"):
            with self.subTest(step):
                self.three_slices(step, "kill", False, lost=True)
                self.assertEqual(self.missing(step), set())


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

    def rehearse(self, card, made_up=UNDER_A_REAL_CLOCK):
        self.archive = self.make_archive(os.environ["STEPCAST"])
        with mock.patch.dict(os.environ, self.environment(card)):
            for _ in range(12):
                machine = PretendedMachine(programs_run=True, made_up=made_up)
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
        # Forecasts are real, and calibrations, validations and PyTorch those of the H100.
        self.rehearse("h200", made_up=("calibrate", "validate", "pytorch", *UNDER_A_REAL_CLOCK))
        self.assertEqual(self.code, 0, self.said)
        kept = self.kept()
        self.assertEqual(json.loads(kept["card.json"])["cluster"], "dgx-h200")
        self.assertEqual(set(json.loads(kept["fits.json"]).values()), {""})
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
