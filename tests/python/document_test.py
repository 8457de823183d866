#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md run one after the other, as they stand there."""

import contextlib
import io
import os
import pathlib
import re
import tempfile
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/python.md"


class Document(unittest.TestCase):

    def test_every_example_runs(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 4)
        names, printed, here = {}, io.StringIO(), os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(printed):
                    for block in blocks:
                        exec(compile(block, str(PAGE), "exec"), names)
            finally:
                os.chdir(here)
        self.assertTrue(names["plan"])
        self.assertEqual(names["best"]["step_time_s"], names["table"][0]["step_time_s"])
        self.assertEqual(names["problems"][0].path, "layout.tp")
        self.assertIn("llama-3.1-70b", names["names"])
        self.assertIn("layout.tp 3 ", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
