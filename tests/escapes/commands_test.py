#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scenario in which every name is hostile, through every command and format: each output is read
by a parser of its format and holds the name; nothing that a terminal must not see is printed."""

import csv
import io
import json
import os
import pathlib
import re
import subprocess
import tempfile
import tomllib
import unittest
import xml.etree.ElementTree

import networkx
import yaml

from hostile import shown, unfit_for_a_terminal

STEPCAST = os.environ["STEPCAST"]
HOSTILE = ("=cmd|x ## h\n## head\n::error::a ##[error]b <img src=x onerror=alert(1)></script>"
           "\x1b[31m\x07\x9b1m\u202e\u2028\ufffe ```q``` |a| **b** [c](http://d) \"'$(id)`id` "
           "\\ \t&amp; 100%")
MODEL, CLUSTER, GPU = "=M" + HOSTILE, "@C" + HOSTILE, "+G" + HOSTILE
# A file may be called anything but these two characters; bytes that are not UTF-8 are legal too.
FILE = HOSTILE.replace("/", "") + "\udcff.json"
MARKDOWN_READER = ["cmark-gfm", "--unsafe", "-e", "table"]


def scenario(**more):
    return {"stepcast": 1,
            "model": {"name": MODEL, "layers": 4, "hidden": 256, "heads": 4, "vocab": 2048,
                      "max_positions": 256, "mlp": "gelu", "norm": "layernorm",
                      "position": "learned", "biases": True, "dropout": 0},
            "cluster": {"base": "dgx-h100", "nodes": 1, "name": CLUSTER,
                        "accelerator": dict(json.loads(GPU_FILE.read_text()), title=GPU)},
            "training": {"global_batch": 8, "sequence_length": 256},
            **more}


SOURCE = pathlib.Path(__file__).resolve().parents[2]
GPU_FILE = SOURCE / "topologies/accelerators/h100-sxm5-80g.json"


class Commands(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / FILE
        self.file.write_text(json.dumps(scenario()))

    def run_it(self, *words, code=0):
        """Runs a command; what it prints may be shown on any terminal."""
        # On a wide screen, where no name is broken into lines.
        done = subprocess.run([STEPCAST, *map(os.fsencode, words)], capture_output=True,
                              env={**os.environ, "COLUMNS": "10000"})
        self.assertIn(done.returncode, (code, 3) if code == 0 else (code,),
                      (words, done.stderr[-2000:]))
        for data in (done.stdout, done.stderr):
            self.assertEqual([], unfit_for_a_terminal(data, "\n\t"), words)
        self.no_command_of_ci(done.stderr.decode(), words)
        return done

    def no_command_of_ci(self, text, words):
        for line in text.split("\n"):
            self.assertFalse(line.strip().startswith("::"), (words, line))
            self.assertNotIn("##[", line, words)

    def out(self, *words, code=0):
        return self.run_it(*words, code=code).stdout.decode()

    def check_table(self, *words):
        text = self.out(*words)
        self.no_command_of_ci(text, words)
        self.assertIn("\\x1b[31m", text)
        self.assertNotIn("\n## head", text)
        return text

    def check_markdown(self, text):
        html = subprocess.run(MARKDOWN_READER, input=text, capture_output=True, text=True,
                              check=True).stdout
        for forbidden in ("<img", "</script", "<a ", "<code>q", "<h2>head", "<strong>b"):
            self.assertNotIn(forbidden, html)
        self.assertIn("&lt;img src=x onerror=alert(1)&gt;", html)
        return html

    def check_csv(self, text, *names):
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        self.assertGreater(len(rows), 1)
        self.assertEqual(1, len({len(row) for row in rows}))
        cells = {cell for row in rows for cell in row}
        for name in names:
            self.assertIn("'" + shown(name), cells)
        for cell in cells:
            self.assertFalse(cell[:1] in "=@\t" and len(cell) > 1, cell)

    def check_page(self, path):
        text = path.read_bytes()
        self.assertEqual([], unfit_for_a_terminal(text, "\n\t"))
        root = xml.etree.ElementTree.fromstring(text)  # pages are XML too
        space = "{http://www.w3.org/1999/xhtml}"
        self.assertEqual([], list(root.iter(space + "img")))
        self.assertIn(shown(MODEL), "".join(root.itertext()))
        for script in root.iter(space + "script"):
            if script.get("id") == "data":
                json.loads(script.text)

    def names_in(self, value):
        """Every text of a JSON document."""
        if isinstance(value, dict):
            for key, inside in value.items():
                yield key
                yield from self.names_in(inside)
        elif isinstance(value, list):
            for inside in value:
                yield from self.names_in(inside)
        elif isinstance(value, str):
            yield value

    def check_json(self, text, *names):
        document = json.loads(text)
        found = set(self.names_in(document))
        for name in names:
            self.assertTrue(any(name in text for text in found), name)
        return document

    def test_predict(self):
        run = ["predict", str(self.file)]
        self.check_table(*run)
        self.check_table(*run, "--explain")
        self.check_json(self.out(*run, "--format", "json"), MODEL, CLUSTER)
        self.check_csv(self.out(*run, "--format", "csv"), MODEL, CLUSTER)
        self.check_markdown(self.out(*run, "--format", "md", "--explain"))
        page, trace = self.folder / "page.html", self.folder / "trace\x1b.json"
        memory = self.folder / "memory"
        self.out(*run, "--html", str(page), "--trace", str(trace), "--memory-timeline",
                 str(memory) + ".csv")
        self.check_page(page)
        self.check_json(trace.read_text(), GPU)
        self.check_csv(pathlib.Path(str(memory) + ".csv").read_text())

    def test_plan(self):
        run = ["plan", str(self.file), "--top", "3"]
        self.check_table(*run)
        self.check_json(self.out(*run, "--format", "json"), CLUSTER)
        self.check_csv(self.out(*run, "--format", "csv"))
        self.check_markdown(self.out(*run, "--format", "md"))
        page = self.folder / "page.html"
        self.out(*run, "--html", str(page))
        self.check_page(page)
        self.check_table(*run[:2], "--advise")
        self.check_json(self.out(*run[:2], "--advise", "--format", "json"))
        self.check_markdown(self.out(*run[:2], "--advise", "--format", "md"))

    def test_plan_over_clusters(self):
        stated = scenario()
        self.file.write_text(json.dumps(
            {**stated, "plan": {"clusters": [stated["cluster"], "dgx-h100"]}}))
        run = ["plan", str(self.file), "--gpus", "8"]
        self.check_table(*run)
        self.check_json(self.out(*run, "--format", "json"), CLUSTER)
        self.check_csv(self.out(*run, "--format", "csv"))
        self.check_markdown(self.out(*run, "--format", "md"))

    def test_compare(self):
        run = ["compare", str(self.file), "--vary", "layout.tp=1,2"]
        self.check_table(*run)
        self.check_json(self.out(*run, "--format", "json"), MODEL)
        self.check_csv(self.out(*run, "--format", "csv"))
        self.check_markdown(self.out(*run, "--format", "md"))
        page = self.folder / "page.html"
        self.out(*run, "--html", str(page))
        self.check_page(page)

    def suite(self):
        suite = self.folder / ("suite " + FILE)
        case, tag = "=I" + HOSTILE, "@T" + HOSTILE
        broken = scenario(layout={"tp": 3})
        suite.write_text(json.dumps(
            {"stepcast_suite": 1, "name": "+S" + HOSTILE, "cases": [
                {"id": case, "source": HOSTILE, "tags": [tag], "scenario": scenario(),
                 "measured": {"step_time_s": 0.01}},
                {"id": "-" + case, "source": HOSTILE, "scenario": broken,
                 "measured": {"step_time_s": 0.01}}]}))
        return suite, "+S" + HOSTILE, case

    def test_check(self):
        path, suite, case = self.suite()
        run = ["check", str(path)]
        self.check_table(*run, "--by-tag")
        self.check_json(self.out(*run, "--format", "json"), suite, case)
        self.check_csv(self.out(*run, "--format", "csv"), suite, case)
        self.check_markdown(self.out(*run, "--format", "md"))
        junit = xml.etree.ElementTree.fromstring(self.out(*run, "--format", "junit"))
        names = {node.get("name") for node in junit.iter("testcase")}
        self.assertIn(shown(case), names)
        github = self.out(*run, "--format", "github").split("\n")
        self.assertTrue(all(re.match(r"::(error|warning|notice) title=[^:,]*::", line)
                            for line in github if line), github)
        page, summary = self.folder / "page.html", self.folder / "summary.md"
        self.out(*run, "--html", str(page), "--md", str(summary))
        xml.etree.ElementTree.fromstring(page.read_bytes())
        self.check_markdown(summary.read_text())

    def test_check_against_a_baseline(self):
        path, suite, case = self.suite()
        baseline = self.folder / ("base " + FILE)
        run = ["check", str(path), "--baseline", str(baseline)]
        self.out(*run, "--update")
        self.assertEqual([], unfit_for_a_terminal(baseline.read_bytes()))
        self.check_json(baseline.read_text(), case)
        for form in "table", "md", "junit", "github", "json":
            self.out(*run, "--format", form)
        broken = ["--tolerance", "step_time.max_abs_error=0.0000001"]
        for form in "table", "github":
            self.out(*run, *broken, "--format", form, code=4)

    def test_validate_where_the_layout_does_not_fit(self):
        stated = scenario(layout={"dp": 1}, training={
            "global_batch": 1, "sequence_length": 256, "precision": "fp32",
            "framework": "native"})
        stated["model"].update(layers=400, hidden=16384, heads=64, vocab=200000)
        stated["cluster"] = {"base": "local", "gpus": 1, "name": CLUSTER}
        self.file.write_text(json.dumps(stated))
        run = ["validate", str(self.file), "--backend", "cpu", "--calibrate", "never"]
        answers = {form: self.run_it(*run, "--format", form, code=3).stdout.decode()
                   for form in ("table", "json", "md", "junit", "github")}
        self.assertIn("\\x1b[31m", answers["table"])
        self.check_json(answers["json"], MODEL)
        self.check_markdown(answers["md"])
        xml.etree.ElementTree.fromstring(answers["junit"])
        self.assertTrue(answers["github"].startswith("::error title=memory::"))

    def test_diagnose(self):
        trace = self.folder / ("trace " + FILE)
        self.out("predict", str(self.file), "--trace", str(trace), "-o", str(self.folder / "p"))
        document = json.loads(trace.read_text())
        document["deviceProperties"][0]["name"] = HOSTILE
        document["traceEvents"].append(
            {"ph": "X", "cat": "kernel", "name": HOSTILE, "pid": 0, "tid": 0, "ts": 1, "dur": 1e6,
             "args": {"phase": "forward"}})
        trace.write_text(json.dumps(document))
        run = ["diagnose", str(self.file), "--trace", str(trace)]
        self.check_table(*run)
        self.check_json(self.out(*run, "--format", "json"), MODEL)
        self.check_markdown(self.out(*run, "--format", "md"))
        page = self.folder / "page.html"
        self.out(*run, "--html", str(page))
        self.check_page(page)

    def test_topology(self):
        cluster = self.folder / "topologies"
        # A copy of the data folder whose clusters have hostile names.
        for name in "models", "suites", "prices":
            (self.folder / name).symlink_to(SOURCE / name)
        (self.folder / "profiles").symlink_to(SOURCE / "calibrate/profiles")
        cluster.mkdir()
        (cluster / "accelerators").symlink_to(SOURCE / "topologies/accelerators")
        (cluster / "clusters").mkdir()
        vertices = ["a" + HOSTILE, "b" + HOSTILE]
        (cluster / "clusters/odd.json").write_text(json.dumps(
            {"stepcast_cluster": 1, "name": CLUSTER, "title": GPU, "sources": [HOSTILE],
             "notes": HOSTILE, **irregular(vertices)}))
        data = ["--data", str(self.folder)]
        self.check_table("topology", "show", "odd", *data)
        self.check_table("topology", "check", "odd", *data)
        self.check_json(self.out("topology", "show", "odd", "--format", "json", *data), *vertices)
        graph = networkx.parse_graphml(self.out("topology", "show", "odd", "--format", "graphml",
                                                *data), force_multigraph=True)
        names = {values["name"] for _, values in graph.nodes(data=True)}
        self.assertTrue({shown(name) for name in vertices} <= names, names)
        dot = self.out("topology", "show", "odd", "--format", "dot", *data)
        subprocess.run(["dot", "-Tcanon"], input=dot.encode(), capture_output=True, check=True)
        for form in "table", "md", "csv", "json":
            self.out("show", "clusters", "--format", form, *data)

    def test_export(self):
        readers = {".json": lambda path: json.loads(path.read_text()),
                   ".toml": lambda path: tomllib.loads(path.read_text()),
                   ".yaml": lambda path: list(yaml.safe_load_all(path.read_text())),
                   ".csv": lambda path: list(csv.reader(io.StringIO(path.read_text()))),
                   ".sh": lambda path: subprocess.run(["bash", "-n", path], check=True),
                   ".sbatch": lambda path: subprocess.run(["bash", "-n", path], check=True)}
        read = set()
        for framework, targets in (("megatron", ("megatron", "torchrun", "slurm", "kubernetes",
                                                 "rankmap", "schedule")),
                                   ("deepspeed", ("deepspeed", "slurm", "kubernetes")),
                                   ("fsdp", ("torchtitan", "slurm", "kubernetes"))):
            for target in targets:
                where = self.folder / f"{framework}-{target}"
                where.mkdir()
                run = ["export", str(self.file), "--framework", framework, "--to", target]
                more = ["--image", "true"] if target == "kubernetes" else []
                self.out(*run, *more, "-o", str(where) + "/")
                for path in where.iterdir():
                    self.assertEqual([], unfit_for_a_terminal(path.read_bytes()), path)
                    found = readers[path.suffix](path)
                    read.add((target, path.suffix))
                    if path.suffix == ".yaml":
                        self.assertEqual({"true"}, set(images(found)))
        self.assertGreaterEqual(len(read), 10, read)

    def test_import(self):
        script = self.folder / FILE.replace(".json", ".sh")
        script.write_bytes(b"torchrun pretrain_gpt.py --num-layers 4 --hidden-size 256 "
                           b"--num-attention-heads 4 --seq-length 256 --max-position-embeddings "
                           b"256 --micro-batch-size 1 --global-batch-size 8 --vocab-size 2048 "
                           b"--unknown-\xff-flag 'a\x1b[31m\xe2\x80\xae' --data-path '\x9b'\n")
        for words in ["--cluster", "dgx-h100x1"], ["--cluster", HOSTILE]:
            done = subprocess.run([STEPCAST, "import", os.fsencode(script), *words],
                                  capture_output=True)
            self.assertIn(done.returncode, (0, 2))
            for data in (done.stdout, done.stderr):
                self.assertEqual([], unfit_for_a_terminal(data))

    def test_errors_are_one_line_each_and_show_what_they_name(self):
        missing = str(self.folder / ("missing " + FILE))
        bad_key = self.folder / "bad.json"
        bad_key.write_text(json.dumps({**scenario(), HOSTILE: HOSTILE, "layout": {
            "schedule": HOSTILE, HOSTILE: 1, "tp": HOSTILE}}))
        raw = self.folder / "raw.json"
        raw.write_bytes(b'{"stepcast": 1, "\xff\x1b": 2}')
        names = [HOSTILE, "\udcff\udcfe"]
        commands = [["predict", missing], ["predict", str(bad_key)], ["predict", str(raw)],
                    ["check", missing], ["check", str(raw)], ["import", missing],
                    ["validate", missing], ["calibrate", "--import", missing, "-o", "x.json"]]
        for name in names:
            commands += [[name], ["predict", name], ["predict", "--" + name],
                         ["predict", "--model", name, "--cluster", "dgx-h100x1", "--global-batch",
                          "8"],
                         ["predict", "--model", "gpt2", "--cluster", name, "--global-batch", "8"],
                         ["predict", str(self.file), "--set", "layout." + name + "=" + name],
                         ["predict", str(self.file), "--set", "training.framework=" + name],
                         ["predict", str(self.file), "--format", name],
                         ["predict", str(self.file), "--tp", name],
                         ["predict", str(self.file), "-o", "/none/" + name],
                         ["predict", str(self.file), "--data", name],
                         ["compare", str(self.file), "--vary", name],
                         ["compare", str(self.file), "--vary", "layout.tp=" + name],
                         ["plan", str(self.file), "--why-not", name],
                         ["plan", str(self.file), "--clusters", name],
                         ["check", str(self.suite()[0]), "--tolerance", name],
                         ["check", str(self.suite()[0]), "--baseline", missing],
                         ["export", str(self.file), "--to", name],
                         ["topology", "show", name], ["show", "models", name], ["show", name]]
        for words in commands:
            done = self.run_it(*words, code=2)
            self.assertEqual(b"", done.stdout)
            lines = done.stderr.decode().split("\n")[:-1]
            self.assertTrue(lines and all(line.startswith("error: ") for line in lines), lines)
        told = self.run_it("predict", missing, code=2).stderr.decode()
        self.assertIn("missing =cmd|x ## h\\n## head\\n::error::a", told)
        self.assertIn("\\x1b[31m\\x07\\x9b1m\\u202e\\u2028\\ufffe", told)
        self.assertIn("\\xff.json: cannot be read", told)


def irregular(names):
    """Two GPUs of one node with a cable between them."""
    return {"accelerator": "h100-sxm5-80g",
            "vertices": [{"name": name, "kind": "gpu", "node": 0} for name in names],
            "links": [{"between": names, "capacity": "50 GB/s", "latency": "1 us"}]}


def images(manifests):
    for document in manifests:
        stack = [document]
        while stack:
            node = stack.pop()
            if isinstance(node, dict):
                if "image" in node:
                    yield node["image"]
                stack += node.values()
            elif isinstance(node, list):
                stack += node


if __name__ == "__main__":
    unittest.main()
