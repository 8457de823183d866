#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The npm package, installed without a network in an empty folder, is the program.

    npm_test.py --web build/web --native build/release
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

OPTIONS = None
FOLDER = None
WORDS = ["--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--global-batch", "64", "--seq",
         "4096", "--tp", "2", "--pp", "2"]


def ours(*arguments, stdin=""):
    program = FOLDER / "node_modules" / ".bin" / "stepcast"
    return subprocess.run([program, *arguments], cwd=FOLDER, input=stdin, capture_output=True,
                          text=True, check=False)


def theirs(*arguments):
    return subprocess.run([FOLDER / "stepcast", *arguments], cwd=FOLDER, capture_output=True,
                          text=True, check=False)


class Package(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        (FOLDER / "scenario.json").write_text(json.dumps({
            "stepcast": 1, "model": "gpt3-1.3b", "cluster": "dgx-a100-80gx1",
            "training": {"global_batch": 16, "sequence_length": 1024}}))

    def test_commands_print_what_the_program_prints(self):
        commands = [
            ["--version"], ["show", "models", "llama"], ["topology", "dgx-h100x2"],
            ["predict", *WORDS], ["predict", "scenario.json", "--format", "csv"],
            ["predict", *WORDS, "--what-if", "nic=+20%"], ["predict", *WORDS, "--tokens", "2T"],
            ["compare", "scenario.json", "--vary", "layout.zero=0,1"],
            ["check", "megatron-core-h100"], ["predict", *WORDS, "--tp", "3"],
            ["predict", "--modle", "x"], ["predict", *WORDS, "--require", "mfu>=0.9"]]
        for command in commands:
            with self.subTest(command=command):
                mine, other = ours(*command), theirs(*command)
                self.assertEqual(mine.stderr, other.stderr)
                self.assertEqual(mine.stdout, other.stdout)
                self.assertEqual(mine.returncode, other.returncode)

    def test_a_search_within_its_time_finds_layouts(self):
        done = ours("plan", "scenario.json", "--top", "3", "--time-limit", "60", "--format",
                    "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["plans"])

    def test_files_are_read_and_written(self):
        done = ours("predict", *WORDS, "--html", "page.html", "--trace", "trace.json", "-o",
                    "forecast.json", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("</html>", (FOLDER / "page.html").read_text())
        self.assertTrue(json.loads((FOLDER / "trace.json").read_text())["traceEvents"])
        self.assertGreater(json.loads((FOLDER / "forecast.json").read_text())["step_time_s"], 0)

    def test_commands_that_are_left_out_say_so(self):
        for command in (["calibrate"], ["validate", "--ranks", "4"], ["import", "run.yaml"],
                        ["export", "--to", "slurm"], ["diagnose", "trace.json"], ["gate"],
                        ["doctor"]):
            with self.subTest(command=command):
                done = ours(*command)
                self.assertEqual(done.returncode, 2)
                self.assertIn("not in this package", done.stderr)

    def test_agents_are_answered(self):
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}
        done = ours("serve", "--mcp", stdin=json.dumps(request) + "\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["result"]["serverInfo"]["name"], "stepcast")

    def test_programs_call_it(self):
        code = """
          const { load, StepcastError } = require("stepcast");
          load().then((stepcast) => {
            const scenario = { model: "gpt3-1.3b", cluster: "dgx-a100-80gx1",
                               training: { global_batch: 16, sequence_length: 1024 } };
            let told = 0;
            const plan = stepcast.plan(scenario, { places: 1, progress: () => void (told += 1) });
            const best = stepcast.predict(plan.layouts[0].scenario);
            let text = "";
            try {
              stepcast.predict({ ...scenario, model: "nothing" });
            } catch (error) {
              if (error instanceof StepcastError) text = error.errors[0].hint;
            }
            console.log(JSON.stringify({ told, text, time: best.step_time_s,
                                         found: plan.layouts[0].step_time_s }));
          });"""
        done = subprocess.run(["node", "-e", code], cwd=FOLDER, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertGreater(said["told"], 0)
        self.assertTrue(said["text"])
        self.assertEqual(said["time"], said["found"])


def main():
    global OPTIONS, FOLDER
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--web", type=pathlib.Path, required=True)
    parser.add_argument("--native", type=pathlib.Path, required=True)
    OPTIONS, rest = parser.parse_known_args()
    OPTIONS.native = OPTIONS.native.resolve()
    if shutil.which("npm") is None:
        print("skipped: no npm")
        sys.exit(77)
    package, = OPTIONS.web.resolve().glob("stepcast-*.tgz")
    with tempfile.TemporaryDirectory(prefix="stepcast-npm-") as folder:
        FOLDER = pathlib.Path(folder)
        shutil.copy(OPTIONS.native / "stepcast", FOLDER)  # with the data inside it
        environment = {**os.environ, "npm_config_cache": str(FOLDER / "cache")}
        subprocess.run(["npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix",
                        FOLDER, package], check=True, env=environment, cwd=FOLDER)
        unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
