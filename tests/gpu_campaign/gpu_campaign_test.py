#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scenarios of the GPU campaign can be forecast, and its scripts end with a reason."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAMPAIGN = ROOT / "scripts/gpu-campaign"


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          cwd=ROOT)


class GpuCampaign(unittest.TestCase):
    def test_scenarios_can_be_forecast(self):
        files = sorted(CAMPAIGN.glob("*.json"))
        self.assertGreaterEqual(len(files), 9)
        for file in files:
            with self.subTest(file.name), tempfile.TemporaryDirectory() as folder:
                stated = pathlib.Path(folder) / file.name
                stated.write_text(file.read_text().replace('"CLUSTER"', '"dgx-h200"'))
                done = run(os.environ["STEPCAST"], "predict", stated, "--format", "json")
                self.assertIn(done.returncode, (0, 3), done.stderr)

    def test_a_comparison_without_a_profile_says_so(self):
        done = run("python3", CAMPAIGN / "pytorch.py", "/nowhere/profile.json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.strip(),
                         "pytorch.py: /nowhere/profile.json: No such file or directory")

    def test_without_a_gpu_every_step_says_why_and_the_first_failure_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            # An archive of what this machine has; the program that measures GPUs cannot run here.
            work = pathlib.Path(folder)
            (work / "bin").mkdir()
            (work / "lib").mkdir()
            (work / "bin/stepcast").symlink_to(os.environ["STEPCAST"])
            for test in ("test_kernels_cuda", "test_comm_nccl"):
                (work / "bin" / test).write_text("#!/bin/sh\necho ran $1\n")
                (work / "bin" / test).chmod(0o755)
            archive = work / "archive.tar.gz"
            subprocess.run(["tar", "-czf", archive, "-C", folder, "bin", "lib"], check=True)
            done = subprocess.run(
                [ROOT / "scripts/gpu-campaign.sh", "run", work / "out", archive],
                capture_output=True, text=True, cwd=ROOT,
                env={**os.environ, "STEPCAST_GPU_PROGRAM": "/nowhere/stepcast-gpu"})
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            told = [line.split(",")[0] for line in done.stdout.splitlines() if "exit code" in line]
            self.assertEqual(told[:4], ["doctor: exit code 0", "tests: exit code 0",
                                        "communication: exit code 0", "calibrate: exit code 2"])
            self.assertIn("to_do", json.loads((work / "out/doctor.json").read_text()))
            self.assertIn("this build has no CUDA", (work / "out/calibrate.log").read_text())
            self.assertEqual(told[-2:], ["pytorch: exit code 1", "pytorch-steps: exit code 1"])
            self.assertIn("pytorch_steps.py: PyTorch ", done.stdout)  # not here, or without a GPU
            self.assertIn("| llama-3.2-1b |", (work / "out/summary.md").read_text())

    def test_the_script_tells_its_halves(self):
        done = run(ROOT / "scripts/gpu-campaign.sh")
        self.assertEqual(done.returncode, 2)
        self.assertIn("gpu-campaign.sh prepare", done.stderr)
        self.assertIn("gpu-campaign.sh run OUT", done.stderr)


if __name__ == "__main__":
    unittest.main()
