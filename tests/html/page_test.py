#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTML reports of the built program, as text: well-formed, self-contained, the same figures as the
JSON, the same bytes twice.

    page_test.py --bin FOLDER
"""

import argparse
import base64
import hashlib
import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BIN = None

LAYOUT = ["--model", "llama-3.1-8b", "--cluster", "dgx-h100x2", "--global-batch", "64", "--seq",
          "4096", "--tp", "2", "--pp", "4"]
SUITE = ["megatron-core-h100", "--threads", "1"]
HOSTILE = "</script><script>alert(1)</script>\"'&<img src=http://x/ onerror=alert(2)>"


class Reader(html.parser.HTMLParser):
    """Tables by id as rows of (text, exact value); every attribute; scripts and styles as text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tables, self.attributes, self.raw = {}, [], {"script": [], "style": []}
        self.table = self.cell = self.inside = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        own = dict(attributes)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag == "table":
            self.table = self.tables.setdefault(own.get("id"), [])
        elif tag == "tr" and self.table is not None:
            self.table.append([])
        elif tag in ("td", "th") and self.table is not None:
            self.cell = [[], own.get("data-value")]
        elif tag in self.raw:
            self.inside = tag
            self.raw[tag].append((own, ""))

    def handle_endtag(self, tag):
        if tag == "table":
            self.table = None
        elif tag in ("td", "th") and self.cell:
            words, value = self.cell
            self.table[-1].append(("".join(words), None if value is None else float(value)))
            self.cell = None
        elif tag == self.inside:
            self.inside = None

    def handle_data(self, data):
        if self.cell:
            self.cell[0].append(data)
        if self.inside:
            own, text = self.raw[self.inside][-1]
            self.raw[self.inside][-1] = (own, text + data)


def run(*words, code=0):
    done = subprocess.run([BIN / "stepcast", *map(str, words)], capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stderr}")
    return done.stdout


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name) / "report.html"

    def make(self, *words, code=0):
        """The page, and what the command printed as JSON beside it."""
        printed = run(*words, "--html", self.file, "--format", "json", code=code)
        return self.file.read_text(), json.loads(printed)

    def check_self_contained(self, text):
        xml.etree.ElementTree.fromstring(text.split("\n", 1)[1])  # well-formed, as XML too
        reader = Reader(text)
        for tag, name, value in reader.attributes:
            self.assertFalse(name.startswith("on"), (tag, name))
            self.assertNotEqual(name, "style", tag)
            if name in ("href", "src", "srcset", "data", "action", "poster"):
                self.assertTrue(value.startswith("#"), (tag, name, value))
        for _, style in reader.raw["style"]:
            self.assertNotIn("url(", style)
            self.assertNotIn("@import", style)
        ids = [value for _, name, value in reader.attributes if name == "id"]
        self.assertEqual(len(ids), len(set(ids)))
        for tag, name, value in reader.attributes:
            if name in ("aria-controls", "aria-labelledby", "data-for"):
                self.assertIn(value, ids)
        return reader

    def check_policy(self, reader):
        """It names the style and the script of the page by hash, and lets nothing else in."""
        policy = next(value for tag, name, value in reader.attributes
                      if tag == "meta" and name == "content" and "default-src" in value)
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)

        def digest(content):
            return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        run_here = [content for own, content in reader.raw["script"] if "type" not in own]
        self.assertEqual(len(run_here), 1)
        self.assertIn(f"script-src 'sha256-{digest(run_here[0])}'", policy)
        self.assertIn(f"style-src 'sha256-{digest(reader.raw['style'][0][1])}'", policy)

    def test_a_forecast_says_what_its_json_says(self):
        text, out = self.make("predict", *LAYOUT)
        reader = self.check_self_contained(text)
        self.check_policy(reader)
        data = [content for own, content in reader.raw["script"] if "type" in own]
        self.assertEqual(json.loads(data[0]), out)
        waterfall = [row[2][1] for row in reader.tables["waterfall"][1:]]
        self.assertEqual(waterfall[:-1], [v for v in out["waterfall_s"].values() if v])
        self.assertEqual(waterfall[-1], out["step_time_s"])
        path = [(row[0][0], row[2][1]) for row in reader.tables["path-steps"][1:]]
        self.assertEqual(path, [(s["what"], s["time_s"]) for s in out["critical_path"]])
        provenance = [row[2][1] for row in reader.tables["provenance"][1:]]
        self.assertEqual(provenance, list(out["provenance"].values()))
        titles = [cell[0] for cell in reader.tables["stages"][0]]
        for row in reader.tables["stages"][1:]:
            stage = [c for c in out["rank_classes"] if c["stage"] == row[0][1]]
            self.assertIn(row[titles.index("device")][1], [c["device_bytes"] for c in stage])
        self.assertEqual(len(reader.tables["stages"]) - 1, 4)

    def test_every_pass_of_a_small_step_has_a_box(self):
        text, _ = self.make("predict", *LAYOUT, "--dp", 2)
        # 64 sequences, dp 2: 32 micro-batches through 4 stages, forward and backward.
        boxes = re.findall(r"<title>(forward|backward) of micro-batch (\d+)", text)
        self.assertEqual(len(boxes), 2 * 4 * 32)
        self.assertNotIn("left out", text)

    def test_a_long_step_is_folded_and_stays_small(self):
        text, _ = self.make("predict", *LAYOUT, "--set", "training.global_batch=2048")
        self.check_self_contained(text)
        self.assertRegex(text, r"Folded at ⋯: [\d,]+ passes .* are left out")
        self.assertLess(len(text.encode()), 1_500_000)

    def test_it_is_the_same_bytes_twice(self):
        first, _ = self.make("predict", *LAYOUT, "--threads", 1)
        second, _ = self.make("predict", *LAYOUT, "--threads", 2)
        self.assertEqual(first, second)

    def test_hostile_names_stay_text(self):
        model = {"name": HOSTILE, "layers": 2, "hidden": 256, "heads": 4, "vocab": 2048,
                 "max_positions": 256, "mlp": "gelu", "norm": "layernorm", "position": "learned"}
        scenario = pathlib.Path(self.folder.name) / "scenario.json"
        scenario.write_text(json.dumps({
            "stepcast": 1, "model": model, "cluster": "dgx-h100x1",
            "training": {"global_batch": 8, "sequence_length": 256}}))
        text, out = self.make("predict", scenario)
        reader = self.check_self_contained(text)
        self.check_policy(reader)
        self.assertEqual(len(reader.raw["script"]), 2)  # the data and the page's own
        self.assertFalse([tag for tag, _, _ in reader.attributes if tag == "img"])
        self.assertEqual(out["resolved"]["model"]["name"], HOSTILE)

    def test_a_layout_that_does_not_fit_is_reported_too(self):
        text, out = self.make("predict", "--model", "llama-3.1-70b", "--cluster", "dgx-h100x1",
                              "--global-batch", "8", code=3)
        self.assertFalse(out["fits"])
        self.assertIn("It does not fit", text)

    def test_a_check_says_what_its_json_says(self):
        text, out = self.make("check", *SUITE)
        reader = self.check_self_contained(text)
        self.check_policy(reader)
        rows = {row[0][0]: row for row in reader.tables["cases"][1:]}
        self.assertEqual(list(rows), [case["id"] for case in out["cases"]])
        for case in out["cases"]:
            row = rows[case["id"]]
            self.assertEqual(row[2][1], case["predicted"].get("step_time_s"))
            self.assertEqual(row[3][1], case["measured"].get("step_time_s"))
            self.assertEqual(row[4][1], case["error"].get("step_time"))
        self.assertEqual(reader.tables["summary"][1][3][1],
                         out["summary"]["all"]["step_time"]["mean_abs_error"])
        points = text.count("predicted, ")
        self.assertEqual(points, sum("step_time" in case["error"] for case in out["cases"]))
        self.assertIn("No limit is broken", text)

    def test_a_broken_limit_comes_first(self):
        text, _ = self.make("check", *SUITE, "--tolerance", "step_time.mean_abs_error=0.001",
                            code=4)
        self.check_self_contained(text)
        self.assertIn("1 limit is broken", text)
        self.assertLess(text.index('id="broken-section"'), text.index('id="scatter"'))

    def test_nothing_is_written_when_the_input_is_wrong(self):
        run("predict", *LAYOUT, "--tp", 3, "--html", self.file, code=2)
        self.assertFalse(self.file.exists())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    BIN = arguments.bin
    unittest.main(argv=[sys.argv[0], *rest])
