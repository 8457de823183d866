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
SPACE = ["--model", "gpt3-1.3b", "--cluster", "dgx-a100-80gx1", "--global-batch", "16", "--seq",
         "1024", "--recompute", "none"]
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
        self.assertEqual(reader.tables["summary"][1][4][1],
                         out["summary"]["all"]["step_time"]["mean_abs_error"])
        points = text.count("predicted, ")
        self.assertEqual(points, sum("step_time" in case["error"] for case in out["cases"]))
        self.assertIn("No limit was given", text)

    def test_a_diagnosis_says_what_its_json_says(self):
        run = ("--model", "llama-3.1-8b", "--cluster", "dgx-h100x1", "--global-batch", "8",
               "--tp", "8")
        trace = pathlib.Path(self.folder.name) / "trace.json"
        self.make("predict", *run, "--what-if", "scale_up=-50%", "--trace", str(trace))
        text, out = self.make("diagnose", *run, "--trace", str(trace))
        reader = self.check_self_contained(text)
        self.check_policy(reader)
        self.assertEqual(len(reader.tables["gaps"][1:]), len(out["gaps"]))
        self.assertIn(out["gaps"][0]["sentence"], reader.tables["gaps"][1][0][0])
        self.assertEqual(len(reader.tables["parts"][1:]), len(out["parts"]))
        for picture in "forecast-picture", "measured-picture":
            self.assertIn(f'id="{picture}"', text)

    def test_a_broken_limit_comes_first(self):
        text, _ = self.make("check", *SUITE, "--tolerance", "step_time.mean_abs_error=0.001",
                            code=4)
        self.check_self_contained(text)
        self.assertIn("1 limit is broken", text)
        self.assertLess(text.index('id="broken-section"'), text.index('id="scatter"'))

    def check_page(self, text, out):
        reader = self.check_self_contained(text)
        self.check_policy(reader)
        data = [content for own, content in reader.raw["script"] if "type" in own]
        self.assertEqual(json.loads(data[0]), out)
        return reader

    def test_a_plan_says_what_its_json_says(self):
        text, out = self.make("plan", *SPACE, "--prove", "--why-not", "tp=8", "--why-not", "pp=3")
        reader = self.check_page(text, out)
        rows = reader.tables["places"][1:]
        self.assertEqual(len(rows), len(out["plans"]))
        for row, plan in zip(rows, out["plans"]):
            prediction = plan["prediction"]
            self.assertEqual([cell[1] for cell in row[:6]],
                             [plan["place"], prediction["step_time_s"],
                              prediction["tokens_per_s_per_gpu"], prediction["mfu"],
                              prediction["peak_device_bytes"], plan["equal_layouts"]])
            self.assertEqual(row[7][0], plan["reason"])
        funnel = [row[2][1] for row in reader.tables["funnel"][1:]]
        pruned = out["pruned"]
        differing = out["searched"] - pruned["by_rules_or_equal"]
        self.assertEqual(funnel[:2], [out["searched"], differing])
        self.assertEqual(funnel[2], differing - pruned["by_memory_bound"])
        self.assertEqual(funnel[3], out["replayed"])
        self.assertEqual(funnel, sorted(funnel, reverse=True))
        self.assertEqual(len(reader.tables["replayed"]) - 1, funnel[4])
        self.assertEqual([row[0][0] for row in reader.tables["why-not"][1:]], ["tp=8", "pp=3"])
        waterfall = [row[2][1] for row in reader.tables["waterfall"][1:]]
        self.assertEqual(waterfall[-1], out["plans"][0]["prediction"]["step_time_s"])
        self.assertRegex(text, r"<title>(forward|backward) of micro-batch \d+")
        self.assertIn("certain, as the engine sees it", text)

    def test_the_front_of_a_plan_is_what_nothing_dominates(self):
        text, out = self.make("plan", *SPACE, "--front", 3)
        reader = self.check_page(text, out)
        rows = [(row[1][1], row[2][1], row[3][0]) for row in reader.tables["replayed"][1:]]

        def beaten(row):
            return any(other[:2] != row[:2] and other[0] <= row[0] and other[1] <= row[1]
                       for other in rows)
        front = {row[:2] for row in rows if row[2] == "front"}
        self.assertEqual(front, {row[:2] for row in rows if not beaten(row)})
        self.assertGreater(len(front), 2)
        chart = text[text.index('class="chart"'):]  # the legend's mark comes before it
        drawn = re.search(r'<path class="front" d="(M[^"]*)"', chart)[1]
        self.assertEqual(drawn.count("V"), len(front) - 1)
        for point in out["pareto"]:
            self.assertIn((point["step_time_s"], point["peak_device_bytes"]), front)
        points = len(re.findall('class="point ', text))
        views = text.count('class="view"')
        self.assertEqual(points, max(views, 1) * len(rows))  # all of them in each view

    def test_a_plan_of_which_nothing_fits_is_reported_too(self):
        text, out = self.make("plan", "--model", "llama-3.1-405b", "--cluster", "dgx-h100x1",
                              "--global-batch", 8, "--seq", 8192, code=3)
        self.check_page(text, out)
        self.assertIn("No layout fits in", text)

    def test_a_comparison_says_what_its_json_says(self):
        text, out = self.make("compare", *LAYOUT, "--vary", "layout.zero=0,1", "--vary",
                              "layout.pp=2,3,4", "--what-if", "nic=+50%")
        reader = self.check_page(text, out)
        rows = reader.tables["points"][1:]
        self.assertEqual(len(rows), 4)
        by_place = {row[0][1]: row for row in rows}
        for plan in out["plans"]:
            row, prediction = by_place[plan["place"]], plan["prediction"]
            self.assertEqual([row[1][0], row[2][0]], [str(v) for v in plan["varied"].values()])
            self.assertEqual([row[4][1], row[5][1], row[6][1]],
                             [prediction["step_time_s"], prediction["step_time_low_s"],
                              prediction["step_time_high_s"]])
        self.assertEqual([row[-1][0] for row in reader.tables["refused"][1:]],
                         ["{rule}: {message} ({limit})".format(**entry)
                          for entry in out["rejected"]])
        parts = reader.tables["mean-parts"]
        for column, plan in enumerate(out["plans"], 1):
            mean = plan["prediction"]["mean_time_s"]
            self.assertEqual(parts[1][column][1], mean["compute"])
            self.assertAlmostEqual(sum(row[column][1] for row in parts[1:]),
                                   plan["prediction"]["step_time_s"], places=6)
        # The differences of the parts add up to the difference of the steps.
        for row, said in zip(reader.tables["difference-parts"][1:],
                             reader.tables["differences"][1:], strict=True):
            self.assertAlmostEqual(sum(cell[1] for cell in row[2:]), row[1][1], places=6)
            self.assertEqual(said[2][1], row[1][1])
        changed = [(row[2][1], row[3][1]) for row in reader.tables["what-if"][1:]]
        self.assertEqual(changed, [(plan["unchanged_step_time_s"],
                                    plan["prediction"]["step_time_s"]) for plan in out["plans"]])

    def test_scaling_is_a_curve_against_the_ideal(self):
        text, out = self.make("compare", *LAYOUT[:-2], "--vary", "cluster.nodes=1,2,4", "--vary",
                              "layout.zero=0,1", "--scaling", "weak")
        self.check_page(text, out)
        self.assertEqual(text.count('class="joined '), 2 * 2)  # curves, charts
        large = sum(not plan["prediction"]["fits"] for plan in out["plans"])
        self.assertGreater(large, 0)
        self.assertEqual(text.count('class="point hollow '), 2 * large)
        self.assertEqual(text.count('class="whisker '), 2 * 6)
        self.assertEqual(len(re.findall(r'class="ideal" d="M[\d. ]+L[\d. ]+L', text)), 2)

    def test_offers_say_what_their_json_says(self):
        text, out = self.make("plan", *SPACE[:2], *SPACE[4:], "--clusters",
                              "dgx-h100,dgx-a100-80g,gh200-alps", "--gpus", "4,8", "--tokens",
                              "10B", "--deadline", "3d", "--objective", "cost")
        reader = self.check_page(text, out)
        titles = [text for text, _ in reader.tables["offers"][0]]
        at = {title: titles.index(title) for title in ("place", "cluster", "GPUs", "step", "cost")}
        rows = reader.tables["offers"][1:]
        self.assertEqual(len(rows), 6)
        for row, place in zip(rows, out["plans"], strict=True):
            self.assertEqual(row[at["place"]][1], place["place"])
            self.assertEqual(row[at["cluster"]][0], place["cluster"]["base"])
            self.assertEqual(row[at["GPUs"]][1], place["cluster"]["gpus"])
            self.assertAlmostEqual(row[at["step"]][1], place["prediction"]["step_time_s"])
            dollars = place["economics"].get("cost_usd")
            self.assertEqual(dollars is None, place["cluster"]["base"] == "gh200-alps")
            self.assertEqual(row[at["cost"]][1], dollars)

    def test_a_tornado_says_what_its_json_says(self):
        text, out = self.make("compare", *LAYOUT, "--tornado", 20)
        reader = self.check_page(text, out)
        step = out["plans"][0]["prediction"]["step_time_s"]
        for row, one in zip(reader.tables["tornado"][1:], out["sensitivity"], strict=True):
            self.assertEqual(row[0][0], one["resource"])
            self.assertAlmostEqual(row[1][1], one["faster_step_time_s"] / step - 1)
            self.assertAlmostEqual(row[3][1], one["slower_step_time_s"] / step - 1)

    def test_hostile_values_of_a_comparison_and_of_a_plan_stay_text(self):
        model = {"layers": 2, "hidden": 256, "heads": 4, "vocab": 2048, "max_positions": 256,
                 "mlp": "gelu", "norm": "layernorm", "position": "learned", "name": HOSTILE}
        scenario = pathlib.Path(self.folder.name) / "scenario.json"
        scenario.write_text(json.dumps({
            "stepcast": 1, "model": model, "cluster": "dgx-h100x1",
            "training": {"global_batch": 8, "sequence_length": 256}}))
        for words in (["plan", scenario, "--top", 2],
                      ["compare", scenario, "--vary", f"model.name=plain,{HOSTILE}"]):
            text, out = self.make(*words)
            reader = self.check_page(text, out)
            self.assertEqual(len(reader.raw["script"]), 2)
            self.assertFalse([tag for tag, _, _ in reader.attributes if tag == "img"])

    def test_nothing_is_written_when_the_input_is_wrong(self):
        for words in (["predict", *LAYOUT, "--tp", 3], ["plan", *SPACE, "--tp", 3],
                      ["compare", *LAYOUT, "--vary", "layout.tp=3"]):
            run(*words, "--html", self.file, code=2)
            self.assertFalse(self.file.exists())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    BIN = arguments.bin
    unittest.main(argv=[sys.argv[0], *rest])
