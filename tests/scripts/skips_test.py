#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A test that was skipped without a known reason fails the test command."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import unexplained_skips

PROGRAM = pathlib.Path(unexplained_skips.__file__)
SCRIPTS = PROGRAM.parents[2] / "scripts"
LOG = """\
 1/4 Test #1: Accepted.ShellcheckFindsNothing ...***Skipped   0.01 sec
100% tests passed, 0 tests failed out of 4

The following tests did not run:
\t  1 - Accepted.ShellcheckFindsNothing (Skipped)
\t  2 - html.browser (Skipped)
\t  3 - gpu.Gemm/Products.AreRight/0 (Skipped)
\t  4 - Some.OtherTest (Disabled)
"""


def run(log):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "log"
        file.write_text(log)
        return subprocess.run([sys.executable, PROGRAM, file], capture_output=True, text=True,
                              check=False)


class Skips(unittest.TestCase):
    def test_what_no_line_explains_is_named(self):
        done = run(LOG)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([line.rsplit(": ", 1)[1] for line in done.stderr.splitlines()],
                         ["Accepted.ShellcheckFindsNothing", "html.browser", "Some.OtherTest"])

    def test_what_a_line_explains_is_none_of_them(self):
        done = run("\t  3 - gpu.Gemm/Products.AreRight/0 (Skipped)\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_reason_is_one_of_the_machine(self):
        text = unexplained_skips.REASONS.read_text()
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        self.assertGreaterEqual(len(lines), 3)
        for line in lines:
            self.assertRegex(line, r"^\S+: needs .+")

    def test_the_test_command_asks_for_all_programs_and_looks_at_skips(self):
        script = (SCRIPTS / "test.sh").read_text()
        self.assertIn("\nscripts/install-deps.sh --all\n", script)
        self.assertRegex(script, r"\ntests/scripts/unexplained_skips\.py ")
        ci = (SCRIPTS.parent / ".ci" / "run").read_text()
        self.assertRegex(ci, r"(?m)^scripts/test\.sh$")


if __name__ == "__main__":
    unittest.main()
