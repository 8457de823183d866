#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The WebAssembly module answers as the program does: on random scenarios the same keys and texts,
and figures that differ by no more than another library of mathematics makes them.

    module_test.py --web build/web --native build/release [--count 100] [--seed 1]
"""

import argparse
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
OPTIONS = None
RELATIVE = 1e-12  # musl's logarithms and powers may differ from glibc's in the last digits
SMALL = {"stepcast": 1, "model": "gpt3-1.3b", "cluster": "dgx-a100-80gx1",
         "training": {"global_batch": 16, "sequence_length": 1024}}


def ask(*requests):
    """The module's answers."""
    lines = "".join(json.dumps({"call": call, "arguments": arguments}) + "\n"
                    for call, arguments in requests)
    done = subprocess.run(["node", HERE / "answers.js", OPTIONS.web / "stepcast"], input=lines,
                          capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(requests), done.stderr
    return answers


def native(folder, *arguments):
    """Output and complaints of the program. 3 is the code of what does not fit."""
    done = subprocess.run([OPTIONS.program, *arguments], capture_output=True,
                          text=True, cwd=folder, check=False)
    assert done.returncode in (0, 2, 3), done
    return done.stdout, done.stderr


def differences(ours, theirs, path=""):
    """Differences of two JSON values: other keys, types or texts, or numbers that are not near."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if list(ours) != list(theirs):
            yield f"{path}: keys {list(ours)} and {list(theirs)}"
            return
        for key in ours:
            yield from differences(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, f"{path}[{i}]")
    elif isinstance(ours, float) or isinstance(theirs, float):
        if not math.isclose(ours, theirs, rel_tol=RELATIVE, abs_tol=1e-15):
            yield f"{path}: {ours!r} and {theirs!r}"
    elif ours != theirs:
        yield f"{path}: {ours!r} and {theirs!r}"


class Module(unittest.TestCase):
    maxDiff = 2000

    def assert_same(self, ours, theirs, what):
        self.assertTrue(theirs, what)
        found = list(differences(json.loads(ours), json.loads(theirs)))
        self.assertFalse(found[:10], what)

    def test_random_scenarios_have_the_program_s_forecasts(self):
        done = subprocess.run(
            [OPTIONS.native / "tests" / "generate" / "hunt_scenarios", "--print", "--seed",
             str(OPTIONS.seed), "--count", str(4 * OPTIONS.count)],
            capture_output=True, text=True, check=True)
        # WebAssembly sees neither the machine, which the cluster "local" is, nor its files.
        texts = [text for text in done.stdout.splitlines()
                 if '"base":"local"' not in text and '"file:' not in text]
        del texts[OPTIONS.count:]
        self.assertEqual(len(texts), OPTIONS.count)
        answers = ask(*(("predict", {"scenario": json.loads(text)}) for text in texts))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "scenario.json"
            for text, answer in zip(texts, answers):
                file.write_text(text)
                stdout, stderr = native(folder, "predict", file, "--format", "json")
                self.assertNotIn("errors", answer, f"{text}\n{stderr}")
                with self.subTest(scenario=text):
                    self.assert_same(answer["json"], stdout, text)

    def test_lists_are_those_of_the_program(self):
        topics = ["models", "clusters", "gpus", "schedules", "keys"]
        for topic, answer in zip(topics, ask(*(("list", {"topic": one}) for one in topics))):
            self.assertEqual(answer["json"], native(".", "show", topic, "--format", "json")[0])

    def test_a_comparison_is_that_of_the_program(self):
        scenarios = [{"name": f"{zero}.json", "scenario": {**SMALL, "layout": {"zero": zero}}}
                     for zero in (0, 1)]
        answer, = ask(("compare", {"scenarios": scenarios, "page": True}))
        self.assertIn('<section id="', answer["page"])
        with tempfile.TemporaryDirectory() as folder:
            for one in scenarios:
                (pathlib.Path(folder) / one["name"]).write_text(json.dumps(one["scenario"]))
            stdout, _ = native(folder, "compare", "0.json", "1.json", "--format", "json")
        self.assert_same(answer["json"], stdout, "compare")

    def test_a_search_finds_the_places_of_the_program(self):
        answer, = ask(("plan", {"scenario": SMALL, "places": 3}))
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "scenario.json").write_text(json.dumps(SMALL))
            theirs = json.loads(native(folder, "plan", "scenario.json", "--top", "3", "--format",
                                       "json")[0])
        self.assertGreater(answer["told"], 0)
        self.assertTrue(answer["proven"])
        times = [place["step_time_s"] for place in answer["layouts"]]
        self.assertGreaterEqual(len(times), 3)
        for ours, place in zip(times, theirs["plans"]):
            self.assertTrue(math.isclose(ours, place["prediction"]["step_time_s"],
                                         rel_tol=RELATIVE))
        again, = ask(("predict", {"scenario": answer["layouts"][0]["scenario"]}))
        self.assertEqual(json.loads(again["json"])["step_time_s"], times[0])

    def test_a_config_of_hugging_face_is_a_model(self):
        config = {"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
                  "num_attention_heads": 16, "intermediate_size": 5632, "vocab_size": 32000,
                  "name": "mine"}
        answer, = ask(("predict", {"scenario": {**SMALL, "model": config}, "pictures": True}))
        self.assertGreater(json.loads(answer["json"])["step_time_s"], 0)
        for picture in ("time", "pipeline", "memory"):
            self.assertIn(f'<section id="{picture}"', answer["pictures"])

    def test_mistakes_are_answered_with_their_remedy(self):
        wrong = [("predict", {"scenario": {**SMALL, "layout": {"tp": 3}}}),
                 ("predict", {"scenario": {**SMALL, "model": "nothing"}}),
                 ("predict", {"scenario": {**SMALL, "layout": {"tpp": 2}}}),
                 ("predict", {"scenary": SMALL}), ("forecast", {}), ("plan", {"scenario": 1}),
                 ("list", {"topic": "stars"})]
        answers = ask(*wrong)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "scenario"
            for (_, arguments), answer in list(zip(wrong, answers))[:3]:
                file.write_text(json.dumps(arguments["scenario"]))
                lines = [f"error: {error['text']}" for error in answer["errors"]]
                self.assertEqual("\n".join(lines) + "\n",
                                 native(folder, "predict", "scenario")[1])
        for answer in answers:
            self.assertTrue(answer["errors"])
            for error in answer["errors"]:
                self.assertTrue(error["message"])
                self.assertTrue(error["hint"], error)

    def test_no_text_ends_the_module(self):
        texts = ["", "{", "[]", "1", '{"call": 1}', '{"call": "predict"}', '{"call": "list"}',
                 '{"call": "predict", "arguments": []}', "[" * 5000, '"\\ud800"']
        done = subprocess.run(["node", HERE / "answers.js", OPTIONS.web / "stepcast"],
                              input="\n".join(texts) + "\n", capture_output=True, text=True,
                              check=True)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), len(texts))
        for answer in answers:
            self.assertTrue(answer["errors"])


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--web", type=pathlib.Path, required=True)
    parser.add_argument("--native", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    OPTIONS, rest = parser.parse_known_args()
    OPTIONS.web, OPTIONS.native = OPTIONS.web.resolve(), OPTIONS.native.resolve()
    with tempfile.TemporaryDirectory() as folder:
        # Away from the tree it has the data inside it, as the module has.
        OPTIONS.program = shutil.copy(OPTIONS.native / "stepcast", folder)
        unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
