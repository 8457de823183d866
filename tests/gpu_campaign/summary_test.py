#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of a campaign, from results made up for this test: nobody measured these figures."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/gpu-campaign/summary.py"
GIB = 1 << 30

WHOLE = {
    "stepcast": 1,
    "predicted": {"step_time_s": 0.206, "peak_memory_bytes": 40 * GIB,
                  "peak_device_bytes": 42 * GIB},
    "measured": {"step_time_s": 0.200, "peak_memory_bytes": 40 * GIB,
                 "device_used_bytes": 43 * GIB},
    "numerics": {"loss_relative_error": 0.002, "loss_limit": 0.01},
    "broken": [], "passed": True,
}
SLICE = {
    "stepcast": 1,
    "alone": {"rank": 0, "of_ranks": 64, "left_out": [
        {"what": "all-reduce", "calls_per_step": 4, "bytes_per_step": 1}]},
    "predicted": {"step_time_s": 0.095, "peak_memory_bytes": 50 * GIB},
    "measured": {"step_time_s": 0.100, "peak_memory_bytes": 50 * GIB},
    "broken": [{"what": "step time", "found": "too far"}], "passed": False,
}
STEPS = {
    "torch": "0.0.0-test", "device": "a test card",
    "scenarios": [
        {"scenario": "whole-test", "of_ranks": 1, "left_out": [],
         "compiled": {"step_time_s": 0.220, "peak_memory_bytes": 45 * GIB,
                      "device_used_bytes": 47 * GIB, "losses": [9.0, 8.5]},
         "eager": {"step_time_s": 0.300, "peak_memory_bytes": 60 * GIB, "losses": [9.0, 8.4]}},
        {"scenario": "slice-test", "of_ranks": 64, "left_out": ["collectives"],
         "compiled": {"error": "RuntimeError: no compiler"},
         "eager": {"step_time_s": 0.150, "peak_memory_bytes": 55 * GIB, "losses": []}},
        {"scenario": "refused-test", "refused": "model.moe: not measured"},
    ],
}
KERNELS = {
    "streams": {"copy_bytes_per_s": 4e12, "adamw_bytes_per_s": 3.5e12},
    "kernels": [{"kind": "gemm", "ratio": 1.01}, {"kind": "gemm", "ratio": 0.97},
                {"kind": "gemm", "ratio": 0.99}],
}


POWER = {
    "measured": {"gemm bf16 test": {"burst_s": 1e-3, "call_s": 1.2e-3, "power_w": 699.6,
                                    "sm_clock_mhz": 1313.4},
                 "gemm fp8 test": {"error": "RuntimeError: no kernel"}},
    "ended": {"gemm bf16 test": 1, "sums test": 2},
}


def page(**files):
    with tempfile.TemporaryDirectory() as folder:
        for name, value in files.items():
            text = value if isinstance(value, str) else json.dumps(value)
            (pathlib.Path(folder) / f"{name}.json").write_text(text)
        out = pathlib.Path(folder) / "summary.md"
        done = subprocess.run([sys.executable, "-B", SCRIPT, folder, "-o", out],
                              capture_output=True, text=True, check=False)
        return done, out.read_text() if out.exists() else None


def rows(text, section):
    lines = text.split(f"## {section}\n")[1].split("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in lines if line.startswith("|")]
    return {row[0]: row[1:] for row in cells[2:]}


class Summary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done, cls.text = page(**{
            "validate-whole-test": WHOLE, "validate-slice-test": SLICE, "pytorch-steps": STEPS,
            "pytorch": KERNELS, "power": POWER, "profile": {"machine": {"driver": "1.2"}},
            "fits": {"large-test": "it needs 90.0 GiB, of 79.1 GiB that the card has",
                     "whole-test": ""},
            "goals": {"profile": "no profile of this card: calibrate hung"},
            "tries": {"calibrate": [{"end": "hung", "why": "ended after 520 s"},
                                    {"end": "killed"}],
                      "doctor": [{"end": "finished", "why": ""}]},
            "done": {"tests": {"code": 1, "seconds": 3}, "doctor": {"code": 0, "seconds": 1},
                     "validate-whole-test": {"code": 0, "seconds": 1, "profile": "a-card-80g"}}})
        assert done.returncode == 0, done.stderr

    def test_step_times_and_their_ratios(self):
        times = rows(self.text, "Step time")
        # 0.206/0.2 = 1.03; 0.206/0.22 = 0.936; 0.22/0.2 = 1.1; 0.3/0.2 = 1.5.
        self.assertEqual(times["whole-test"], ["1 of 1", "206.00", "200.00", "220.00", "300.00",
                                               "+3.0 %", "-6.4 %", "1.100", "1.500"])
        self.assertEqual(times["slice-test"], ["1 of 64", "95.00", "100.00", "–", "150.00",
                                               "-5.0 %", "–", "–", "1.500"])
        self.assertEqual(set(times["refused-test"]), {"–"})

    def test_a_scenario_of_the_campaign_without_results_has_dashes(self):
        self.assertEqual(set(rows(self.text, "Step time")["llama-3.2-1b"]), {"–"})

    def test_means_and_worst_cases(self):
        totals = rows(self.text, "All cases")
        self.assertEqual(totals["forecast against executor"], ["2", "4.0 %", "5.0 %"])
        self.assertEqual(totals["forecast against PyTorch compiled"], ["1", "6.4 %", "6.4 %"])
        self.assertEqual(totals["memory of tensors"], ["2", "0.0 %", "0.0 %"])
        self.assertEqual(totals["memory by the driver"], ["1", "2.3 %", "2.3 %"])  # 42/43
        self.assertEqual(totals["PyTorch compiled over executor"], ["1", "1.100", "1.100"])

    def test_memory(self):
        memory = rows(self.text, "Memory")
        self.assertEqual(memory["whole-test"], ["40.00", "40.00", "+0.0 %", "42.00", "43.00",
                                                "-2.3 %", "45.00", "47.00", "60.00"])
        self.assertEqual(memory["slice-test"][3:], ["–", "–", "–", "–", "–", "55.00"])

    def test_numerics(self):
        numerics = rows(self.text, "Numerics")
        self.assertEqual(numerics["whole-test"], ["2.00e-03", "1.00e-02", "–", "–", "yes",
                                                  "9.000 to 8.500"])
        self.assertEqual(numerics["slice-test"], ["–", "–", "–", "–", "no", "–"])

    def test_kernels(self):
        kernels = rows(self.text, "Kernels")
        self.assertEqual(kernels["gemm"], ["3", "0.990", "0.970", "2 of 3 (from 0.98)"])
        self.assertEqual(kernels["attention"], ["–"] * 4)
        self.assertIn("a copy reaches 4.000 TB/s, fused AdamW 3.500 TB/s", self.text)

    def test_power(self):
        power = rows(self.text, "Power")
        self.assertEqual(power["gemm bf16 test"], ["1.00", "1.20", "1.20", "700 W", "1313 MHz"])
        self.assertEqual(power["gemm fp8 test"], ["–"] * 4 + ["RuntimeError: no kernel"])
        # A kernel that ended its process once and was measured then is no remark.
        self.assertIn("- sums test has ended its process: nothing is known of it\n", self.text)
        self.assertNotIn("- gemm bf16 test has ended", self.text)

    def test_remarks_and_machine(self):
        for line in ("- tests ended with exit code 1: tests.log says why",
                     "- calibrate, run 1 of 2: hung: ended after 520 s",
                     "- calibrate, run 2 of 2: killed",
                     "- validate-whole-test has the profile a-card-80g, which is shipped, for the "
                     "card's own",
                     "- no profile of this card: calibrate hung",
                     "- large-test, left out: it needs 90.0 GiB, of 79.1 GiB that the card has",
                     "- slice-test, step time: too far",
                     "- slice-test, PyTorch, compiled: RuntimeError: no compiler",
                     "- slice-test, left out in PyTorch: collectives",
                     "- slice-test, left out in the executor: all-reduce",
                     "- refused-test, PyTorch: model.moe: not measured",
                     "a test card, PyTorch 0.0.0-test, driver 1.2"):
            self.assertIn(line + "\n", self.text)
        self.assertNotIn("- doctor", self.text)

    def test_results_of_pytorch_may_lie_in_a_file_for_each_scenario(self):
        apart = {f"pytorch-steps-{one['scenario']}": {**STEPS, "scenarios": [one]}
                 for one in STEPS["scenarios"]}
        _, text = page(**apart)
        self.assertEqual(rows(text, "Step time")["whole-test"][3], "220.00")
        self.assertEqual(rows(text, "Step time")["slice-test"][4], "150.00")

    def test_an_empty_folder_gives_a_page_of_dashes(self):
        done, text = page()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(rows(text, "All cases")["forecast against executor"], ["0", "–", "–"])
        self.assertIn("## Power\n\n–\n", text)

    def test_what_is_not_json_is_named(self):
        done, text = page(pytorch="{")
        self.assertEqual(done.returncode, 1)
        self.assertIn("pytorch.json", done.stderr)
        self.assertIsNone(text)


if __name__ == "__main__":
    unittest.main()
