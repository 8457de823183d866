#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scenarios of the GPU campaign can be forecast, and its scripts end with a reason."""

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

    def test_the_script_tells_its_halves(self):
        done = run(ROOT / "scripts/gpu-campaign.sh")
        self.assertEqual(done.returncode, 2)
        self.assertIn("gpu-campaign.sh prepare", done.stderr)
        self.assertIn("gpu-campaign.sh run OUT", done.stderr)


if __name__ == "__main__":
    unittest.main()
