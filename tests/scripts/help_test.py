#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts that take minutes say what they do, and start nothing for a word they do not know."""

import pathlib
import subprocess
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
NAMES = ("test.sh", "build.sh", "demo.sh", "install-deps.sh", "update-docs.sh",
         "count-instructions.sh")


def call(name, *words):
    return subprocess.run([SCRIPTS / name, *words], capture_output=True, text=True, timeout=60)


class Help(unittest.TestCase):
    def test_it_is_the_comment_at_the_head(self):
        for name in NAMES:
            for flag in ("-h", "--help"):
                with self.subTest(name=name, flag=flag):
                    done = call(name, flag)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(f"scripts/{name}", done.stdout)
                    self.assertNotIn("#", done.stdout)
                    self.assertNotIn("set -", done.stdout)

    def test_the_quick_form_is_in_it(self):
        self.assertIn("scripts/test.sh sanitizers", call("test.sh", "--help").stdout)

    def test_other_words_are_refused(self):
        for name in NAMES:
            with self.subTest(name=name):
                done = call(name, "--hlep")
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
