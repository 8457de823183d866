#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Errors name path, value and hint; nothing that is asked wrongly ends the interpreter."""

import pickle
import unittest

import stepcast

STATED = {"model": "llama-3.1-8b", "cluster": "dgx-h100", "training": {"global_batch": 64}}


class Errors(unittest.TestCase):

    def error_of(self, *arguments, **keys):
        with self.assertRaises(stepcast.Error) as raised:
            stepcast.predict(*arguments, **keys)
        return raised.exception

    def test_an_illegal_value_is_told_with_its_path_and_what_is_accepted(self):
        error = self.error_of(STATED, tp=3)
        self.assertEqual((error.path, error.value), ("layout.tp", 3))
        self.assertEqual(error.hint, "use 2 or 4")
        self.assertIsInstance(error, ValueError)
        self.assertIn("layout.tp: ", str(error))

    def test_all_problems_are_listed(self):
        error = self.error_of({**STATED, "layout": {"tpp": 2, "pp": "many"}, "modle": "x"})
        problems = {problem.path: problem for problem in error.problems}
        self.assertEqual(problems["layout.tpp"].code, "unknown_key")
        self.assertEqual(problems["layout.tpp"].value, 2)
        self.assertIn("did you mean 'tp'", problems["layout.tpp"].hint)
        self.assertEqual(problems["layout.pp"].code, "wrong_type")
        self.assertEqual(problems["layout.pp"].value, "many")
        self.assertIn("modle", problems)

    def test_a_keyword_that_is_no_key_has_its_nearest(self):
        error = self.error_of(STATED, global_bach=64)
        self.assertEqual(error.path, "global_bach")
        self.assertEqual(error.hint, "did you mean 'global_batch'?")

    def test_a_file_that_is_not_there_is_named(self):
        error = self.error_of("nowhere/scenario.json")
        self.assertEqual(error.problems[0].file, "nowhere/scenario.json")

    def test_a_missing_key_has_no_value(self):
        error = self.error_of({"cluster": "dgx-h100"})
        self.assertEqual(error.problems[0].path, "model")
        self.assertIsNone(error.value)

    def test_lint_lists_what_predict_would_raise(self):
        self.assertEqual(stepcast.lint(STATED), [])
        self.assertEqual(stepcast.lint(STATED, tp=3), list(self.error_of(STATED, tp=3).problems))
        self.assertEqual([problem.path for problem in stepcast.lint(STATED, tpp=3)], ["tpp"])

    def test_another_process_gets_the_whole_error(self):
        error = self.error_of(STATED, tp=3)
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual(copy.problems, error.problems)
        self.assertEqual(str(copy), str(error))

    def test_what_is_no_scenario_is_a_type_error(self):
        for wrong in (3, ["dgx-h100"], object()):
            with self.assertRaises(TypeError):
                stepcast.predict(wrong)
        with self.assertRaises(TypeError):
            stepcast.predict(STATED, what_if=[3])

    def test_options_of_a_search_have_limits(self):
        for option, wrong in {"top": 0, "replays": -1, "front": 1000, "time_limit_s": -3,
                              "memory_margin": 2, "risk": 0.1}.items():
            with self.assertRaises(stepcast.Error) as raised:
                stepcast.plan(STATED, **{option: wrong})
            self.assertEqual(raised.exception.path, option.replace("_s", ""))
            self.assertIn(" to ", raised.exception.hint)

    def test_names_of_suites_and_limits_are_checked(self):
        for arguments, words in ((("zero-bubble",), "there is no suite"),
                                 (("nowhere/suite.json",), "nowhere/suite.json")):
            with self.assertRaises(stepcast.Error) as raised:
                stepcast.check(*arguments)
            self.assertIn(words, str(raised.exception))
        with self.assertRaises(stepcast.Error):
            stepcast.check("zero-bubble-a100", tolerances=["speed=1"])
        with self.assertRaises(stepcast.Error):
            stepcast.compare([STATED, STATED], set={"layout.tp": 3})


if __name__ == "__main__":
    unittest.main()
