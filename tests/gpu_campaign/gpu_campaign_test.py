#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scenarios of the GPU campaign can be forecast, and its scripts end with a reason."""

import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAMPAIGN = ROOT / "scripts/gpu-campaign"
sys.path.insert(0, str(CAMPAIGN))

import machine  # noqa: E402
import steps  # noqa: E402


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          cwd=ROOT)


def ends(process):
    """Waits for it. It may be a zombie until its new parent has looked."""
    file = pathlib.Path(f"/proc/{process}/stat")
    while True:
        try:
            if file.read_text().split()[2] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)


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

    def test_without_a_gpu_nothing_begins(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = pathlib.Path(folder) / "tools"
            tools.mkdir()
            (tools / "nvidia-smi").write_text("#!/bin/sh\necho no devices were found\nexit 6\n")
            (tools / "nvidia-smi").chmod(0o755)
            done = subprocess.run(
                [ROOT / "scripts/gpu-campaign.sh", "run", f"{folder}/out"], text=True, cwd=ROOT,
                capture_output=True, env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertEqual(done.stderr.strip(), "gpu-campaign.sh: nvidia-smi names no GPU: "
                                                  "no devices were found")

    def test_cards_are_known_by_what_their_driver_calls_them(self):
        topologies = ROOT / "topologies"
        for card, mib, accelerator, cluster in (
                ("NVIDIA H100 80GB HBM3", 81559, "h100-sxm5-80g", "dgx-h100"),
                ("NVIDIA H200", 143771, "h200-sxm5-141g", "dgx-h200"),
                ("NVIDIA A100-SXM4-80GB", 81920, "a100-sxm4-80g", "dgx-a100-80g"),
                ("NVIDIA A100-SXM4-40GB", 40960, "a100-sxm4-40g", "dgx-a100-40g"),
                ("NVIDIA A100-PCIE-80GB", 81920, "a100-pcie-80g", "a100-pcie-8"),
                ("NVIDIA B200", 183359, "b200-sxm6-180g", "dgx-b200"),
                ("NVIDIA GeForce RTX 4090", 24564, "rtx4090-24g", "pcie-4090-8")):
            with self.subTest(card):
                found = machine.accelerator_of(card, mib << 20, topologies)
                self.assertEqual(found, accelerator)
                self.assertEqual(machine.cluster_of(found, topologies), cluster)
        for card in ("NVIDIA H100 PCIe", "NVIDIA H100 NVL"):
            found = machine.accelerator_of(card, 80 << 30, topologies)
            self.assertIn(card.split()[-1].lower(), found)
        with self.assertRaisesRegex(machine.NoCard, "describes no 'NVIDIA T4'"):
            machine.accelerator_of("NVIDIA T4", 15 << 30, topologies)

    def test_what_runs_under_compute_sanitizer_exists(self):
        sources = "".join(file.read_text() for file in (ROOT / "tests/kernels/cuda").glob("*.cpp"))
        known = {f"{suite}/bf16.{name}"
                 for suite, name in re.findall(r"TYPED_TEST\((\w+), (\w+)\)", sources)}
        known |= {f"{suite}.{name}"
                  for suite, name in re.findall(r"TEST_F\((\w+), (\w+)\)", sources)}
        for pattern in (*steps.MEMCHECK.split(":"), *steps.RACECHECK.split(":")):
            self.assertTrue(fnmatch.filter(known, pattern), pattern)

    def test_libraries_are_found_where_they_are(self):
        with tempfile.TemporaryDirectory() as folder:
            wheels = pathlib.Path(folder) / "nvidia/cudnn/lib"
            wheels.mkdir(parents=True)
            (wheels / "libcudnn-of-this-test.so.9").write_text("")
            with mock.patch.object(sys, "path", [folder]):
                found = machine.library_folders(["libcudnn-of-this-test.so.*", "libnone.so.1"], {})
            self.assertEqual(found, ([str(wheels)], ["libnone.so.1"]))

    def test_libraries_travel_unless_the_machine_has_them_by_their_exact_names(self):
        linked = {"libm.so.6": "/lib", "libmpi.so.40": "/lib", "libc.so.6": "/lib",
                  "libcap.so.2": "/lib", "libcurl.so.4": "/lib", "libdl.so.2": "/lib",
                  "libcublasLt.so.13": "/cuda", "libcups.so.2": "/lib",
                  "libpthread.so.0": "/lib", "librtmp.so.1": "/lib", "libstdc++.so.6": "/lib"}
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder) / "ldd"
            lines = "\n".join(f"\t{name} => {place}/{name} (0x1)" for name, place in
                              linked.items())
            tool.write_text(f"#!/bin/sh\ncat <<'END'\n\tlinux-vdso.so.1 (0x2)\n{lines}\nEND\n")
            tool.chmod(0o755)
            done = subprocess.run(
                [ROOT / "scripts/gpu-campaign.sh", "libraries", "a-program"], text=True, cwd=ROOT,
                capture_output=True, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(done.stdout.split()), {
            "/lib/libmpi.so.40", "/lib/libcap.so.2", "/lib/libcurl.so.4", "/lib/librtmp.so.1",
            "/lib/libcups.so.2", "/lib/libstdc++.so.6",
            "libcublasLt.so.13", "libnvrtc.so.13", "libcudnn.so.9", "libnccl.so.2"})

    def test_a_card_has_its_shipped_profile(self):
        topologies, profiles = ROOT / "topologies", ROOT / "calibrate/profiles"
        self.assertEqual(machine.shipped_profile("dgx-h200", topologies, profiles),
                         profiles / "h200-sxm5-141g.json")
        self.assertEqual(machine.shipped_profile("dgx-h100", topologies, profiles),
                         profiles / "h100-sxm5-80g.json")
        self.assertIsNone(machine.shipped_profile("my-own.json", topologies, profiles))

    def test_what_a_program_leaves_behind_ends_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            code = machine.Machine().run(
                ["sh", "-c", "sleep 1000 & echo $!"], folder, log, 60, 20, lambda: None)
            self.assertEqual(code, 0)
            self.assertTrue(ends(int(log.read_text())))

    def test_the_script_tells_its_halves(self):
        done = run(ROOT / "scripts/gpu-campaign.sh")
        self.assertEqual(done.returncode, 2)
        self.assertIn("gpu-campaign.sh prepare", done.stderr)
        self.assertIn("gpu-campaign.sh run OUT", done.stderr)
        done = run(ROOT / "scripts/gpu-campaign.sh", "run", "--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in steps.SLICES:
            self.assertRegex(done.stdout, rf"(?m)^    {name} +\S")


if __name__ == "__main__":
    unittest.main()
