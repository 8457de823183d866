#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A test that was skipped without a known reason fails the test command."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import test_results

PROGRAM = pathlib.Path(test_results.__file__)
SCRIPTS = PROGRAM.parents[2] / "scripts"
LOG = """\
 1/3 Test #1: core.0 ...................   Passed    0.51 sec
 2/3 Test #2: html.browser .............***Skipped   2.25 sec
100% tests passed, 0 tests failed out of 3

The following tests did not run:
\t  2 - html.browser (Skipped)
\t  4 - lab.lab (Skipped)
\t  5 - some.other_test (Disabled)
"""
RESULTS = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3"><testsuite name="Gemm" tests="3">
  <testcase name="IsRight/0" status="run" result="completed" time="1.5" classname="Gemm/Products" />
  <testcase name="IsRight/1" status="run" result="skipped" time="0" classname="Gemm/Products">
    <skipped message="no GPU"/></testcase>
  <testcase name="IsOff" status="notrun" result="suppressed" time="0" classname="Gemm/Products" />
</testsuite></testsuites>
"""


def run(log, **results):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "log"
        file.write_text(log)
        for name, text in results.items():
            (pathlib.Path(folder) / f"{name}.0.xml").write_text(text)
        return subprocess.run([sys.executable, PROGRAM, "--log", file, "--results", folder],
                              capture_output=True, text=True, check=False)


class Skips(unittest.TestCase):
    def test_what_no_line_explains_is_named(self):
        done = run(LOG, core=RESULTS)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([line.rsplit(": ", 1)[1] for line in done.stderr.splitlines()],
                         ["html.browser", "some.other_test", "core.Gemm/Products.IsRight/1"])

    def test_what_a_line_explains_is_none_of_them(self):
        done = run("\t  3 - lab.lab (Skipped)\n", kernels_gpu=RESULTS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_cases_are_counted_and_the_longest_stand_first(self):
        lines = run(LOG, kernels_gpu=RESULTS, core=RESULTS).stdout.splitlines()
        self.assertEqual(lines[0].split(), ["2.2", "s", "html.browser"])
        self.assertEqual(lines[1].split(), ["1.5", "s", "core.Gemm/Products.IsRight/0"])
        self.assertEqual(lines[-1], "4 cases of 2 shards, and 1 other tests")

    def test_a_shard_without_cases_fails(self):
        done = run(LOG, lab="<testsuites/>")
        self.assertEqual(done.returncode, 1)
        self.assertIn("a shard without a case: lab.0.xml", done.stderr)

    def test_every_reason_is_one_of_the_machine(self):
        text = test_results.REASONS.read_text()
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        self.assertGreaterEqual(len(lines), 3)
        for line in lines:
            self.assertRegex(line, r"^\S+: needs .+")

    def test_the_test_command_asks_for_all_programs_and_looks_at_skips(self):
        script = (SCRIPTS / "test.sh").read_text()
        self.assertIn("\nscripts/install-deps.sh --all\n", script)
        self.assertRegex(script, r"\n  tests/scripts/test_results\.py ")
        ci = (SCRIPTS.parent / ".ci" / "run").read_text()
        self.assertRegex(ci, r"(?m)^scripts/test\.sh$")


if __name__ == "__main__":
    unittest.main()
