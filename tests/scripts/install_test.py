#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""install-deps.sh waits for a program that holds apt's lock, says so, and gives up after five
minutes. It leaves a Node.js from elsewhere alone."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "install-deps.sh"
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 712 (apt-get)"

# Stand-ins, found first: nothing is installed, apt-get fails as often as the file `failures` says,
# with the words of the file `words`, and nobody sleeps.
STAND_INS = {
    "dpkg-query": "exit 1",
    "sudo": 'exec "$@"',
    "node": "",
    "npm": "",
    "sleep": 'echo "$1" >> "$FOLDER/slept"',
    "apt-get": """
echo "$*" >> "$FOLDER/called"
left=$(cat "$FOLDER/failures")
if [ "$left" -gt 0 ]; then
  echo $((left - 1)) > "$FOLDER/failures"
  cat "$FOLDER/words" >&2
  exit 100
fi""",
}


class Installs(unittest.TestCase):
    def install(self, failures, words, kind="--build"):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            for name, body in STAND_INS.items():
                (path / name).write_text("#!/bin/sh\n" + body + "\n")
                (path / name).chmod(0o755)
            (path / "failures").write_text(str(failures))
            (path / "words").write_text(words + "\n")
            done = subprocess.run(
                [SCRIPT, kind], capture_output=True, text=True, check=False,
                env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "FOLDER": folder})
            slept = path / "slept"
            self.slept = sum(map(int, slept.read_text().split())) if slept.exists() else 0
            self.called = (path / "called").read_text().splitlines()
            return done

    def test_a_lock_that_goes_is_waited_for(self):
        done = self.install(3, LOCKED)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([words.split()[0] for words in self.called],
                         ["update"] * 4 + ["install"])
        self.assertEqual(self.slept, 15)
        self.assertEqual(done.stderr.count("another program uses apt"), 1)

    def test_a_lock_that_stays_ends_after_five_minutes_with_its_words(self):
        done = self.install(1000, LOCKED)
        self.assertEqual(done.returncode, 100)
        self.assertEqual(self.slept, 300)
        self.assertIn(LOCKED, done.stderr)

    def test_another_error_is_not_waited_for(self):
        done = self.install(1, "E: Unable to locate package")
        self.assertEqual((done.returncode, self.slept), (100, 0))
        self.assertIn("Unable to locate package", done.stderr)

    def test_programs_from_elsewhere_are_not_installed_again(self):
        done = self.install(0, "", "--web")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(" emscripten ", self.called[-1])
        self.assertNotRegex(self.called[-1], r"\b(nodejs|npm)\b")


if __name__ == "__main__":
    unittest.main()
