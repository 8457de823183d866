#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers of the module: the same for each way to state a scenario, and for each form of it."""

import json
import pathlib
import pickle
import tempfile
import unittest
import xml.dom.minidom

import stepcast

LAYOUT = {"tp": 2, "pp": 2}
STATED = {"model": "llama-3.1-8b", "cluster": "dgx-h100",
          "training": {"global_batch": 64, "sequence_length": 4096}, "layout": LAYOUT}


class Predict(unittest.TestCase):

    def test_every_way_to_state_a_scenario_gives_the_same_forecast(self):
        forecast = stepcast.predict(STATED)
        words = stepcast.predict(model="llama-3.1-8b", cluster="dgx-h100", global_batch=64,
                                 sequence_length=4096, tp=2, pp=2)
        flags = stepcast.predict(model="llama-3.1-8b", cluster="dgx-h100", global_batch=64,
                                 seq=4096, layout=LAYOUT)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "scenario.json"
            file.write_text(json.dumps({"stepcast": 1, **STATED, "layout": {"tp": 4}}))
            changed = stepcast.predict(file, set={"layout.pp": 2}, tp=2)
            named = stepcast.predict(str(file), layout=LAYOUT)
        for other in (words, flags, changed, named):
            self.assertEqual(other, forecast)
        self.assertTrue(forecast["fits"])
        self.assertLess(forecast["step_time_low_s"], forecast["step_time_s"])
        self.assertEqual(forecast["resolved"]["layout"]["dp"], 2)  # 8 GPUs in 2 x 2

    def test_options_change_what_they_say(self):
        plain = stepcast.predict(STATED)
        explained = stepcast.predict(STATED, explain=True)
        self.assertNotIn("explain", plain)
        self.assertGreater(set(explained), set(plain))
        slower = stepcast.predict(STATED, what_if=["scale_up=-50%"])
        self.assertGreater(slower["step_time_s"], plain["step_time_s"])

    def test_rows_are_those_of_the_programs_table(self):
        forecast = stepcast.predict(STATED)
        row, = forecast.rows
        self.assertEqual(row["step_time_s"], forecast["step_time_s"])
        self.assertEqual(row["tp"], 2)
        self.assertIsInstance(row["model"], str)
        self.assertIn("step", forecast.text())
        self.assertIn("|", forecast.markdown())

    def test_a_copy_in_another_process_is_a_dict(self):
        forecast = stepcast.predict(STATED)
        copy = pickle.loads(pickle.dumps(forecast))
        self.assertIs(type(copy), dict)
        self.assertEqual(copy, forecast)

    def test_data_of_a_folder_goes_before_what_the_module_carries(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(stepcast.Error) as raised:
                stepcast.models(data=folder)
        self.assertIn("holds no models", str(raised.exception))


class Pictures(unittest.TestCase):

    def test_a_notebook_shows_the_page_in_a_frame(self):
        forecast = stepcast.predict(STATED)
        page = forecast.html()
        shown = forecast._repr_html_()
        self.assertTrue(page.startswith("<!DOCTYPE html>"))
        self.assertTrue(shown.startswith("<iframe "))
        self.assertNotIn("<html", shown)  # escaped, so that it is one attribute
        self.assertIn("&lt;html", shown)

    def test_parts_of_a_page_stand_alone(self):
        forecast = stepcast.predict(STATED)
        for name in ("time", "pipeline", "memory"):
            self.assertIn(name, forecast.pictures())
            picture = forecast.picture(name)
            self.assertEqual(picture.html.count("<section "), 1, name)
            self.assertTrue(picture.html.rstrip().endswith("</html>"), name)
            self.assertTrue(picture.svg, name)
            for drawing in picture.svg:
                document = xml.dom.minidom.parseString(drawing)
                self.assertEqual(document.documentElement.tagName, "svg")
                self.assertTrue(document.getElementsByTagName("style"))
        # One drawing holds all passes of both stages: each is a box with its micro-batch.
        passes = max(forecast.picture("pipeline").svg, key=len)
        self.assertIn("forward of micro-batch 0", passes)
        with self.assertRaises(KeyError):
            forecast.picture("weather")

    def test_a_trace_has_every_pass(self):
        events = stepcast.predict(STATED).trace()["traceEvents"]
        self.assertGreater(len(events), 100)


class Plan(unittest.TestCase):

    def test_the_best_layout_is_forecast_as_the_plan_says(self):
        told = []
        plan = stepcast.plan(STATED, layout={}, replays=64, progress=told.append)
        self.assertTrue(plan)
        self.assertEqual(len(plan.rows), min(10, len(plan.layouts)))
        best = stepcast.predict(plan.scenario(0))
        self.assertEqual(best["step_time_s"], plan.rows[0]["step_time_s"])
        self.assertEqual([row["place"] for row in plan.rows], [*range(1, len(plan.rows) + 1)])
        self.assertIn("tp ", plan.layouts[0])
        self.assertTrue(told)
        self.assertGreaterEqual(told[-1]["replayed"], 1)
        self.assertEqual(plan, stepcast.plan(STATED, layout={}, replays=64, threads=1))
        with self.assertRaises(IndexError):
            plan.scenario(len(plan.layouts))
        self.assertIn("<svg", plan._repr_html_().replace("&lt;", "<"))

    def test_layouts_that_are_asked_about_are_explained(self):
        plan = stepcast.plan(STATED, layout={}, replays=16, why_not=[{"tp": 8, "pp": 1}])
        self.assertEqual(len(plan["why_not"]), 1)

    def test_nothing_that_fits_is_an_answer(self):
        plan = stepcast.plan(model="llama-3.1-405b", cluster="dgx-h100", global_batch=8)
        self.assertFalse(plan)
        self.assertEqual(plan.layouts, [])

    def test_a_callback_that_says_no_ends_the_search_with_what_it_found(self):
        plan = stepcast.plan(model="llama-3.1-70b", cluster="dgx-h100x64", global_batch=1024,
                             prove=True, progress=lambda now: now["replayed"] == 0)
        self.assertTrue(plan)
        self.assertFalse(plan.proven)


class CompareAndCheck(unittest.TestCase):

    def test_scenarios_stand_side_by_side_by_name(self):
        both = stepcast.compare({"plain": STATED, "wide": {**STATED, "layout": {"tp": 4}}},
                                set={"training.global_batch": 32})
        times = {row["file"]: row["step_time_s"] for row in both.rows}
        alone = stepcast.predict(STATED, global_batch=32)
        self.assertEqual(times["plain"], alone["step_time_s"])
        self.assertEqual(set(times), {"plain", "wide"})
        self.assertIn("wide", both.text())
        self.assertIn("<html", both.html())

    def test_a_list_is_numbered(self):
        both = stepcast.compare([STATED, {**STATED, "layout": {}}])
        self.assertEqual({row["file"] for row in both.rows}, {"scenario 1", "scenario 2"})

    def test_a_check_is_true_where_its_limits_are_kept(self):
        suite = "zero-bubble-a100"
        self.assertIn(suite, stepcast.suites())
        kept = stepcast.check(suite, tolerances=["step_time.mean_abs_error=0.5"])
        self.assertTrue(kept)
        self.assertEqual(len(kept.rows), len(kept["cases"]))
        broken = stepcast.check(suite, tolerances=["step_time.mean_abs_error=0.0001"])
        self.assertFalse(broken)
        self.assertIn("<testsuites", broken.junit())


class Lists(unittest.TestCase):

    def test_models_and_clusters_are_listed_with_their_figures(self):
        model, = stepcast.models("llama-3.1-70b")
        self.assertEqual(model["parameters"], 70_553_706_496)
        self.assertIn("dgx-h100", [cluster["name"] for cluster in stepcast.clusters()])
        self.assertTrue(stepcast.gpus("h100"))
        self.assertTrue(stepcast.schedules())
        self.assertIn("layout.tp", [key["key"] for key in stepcast.keys()])


if __name__ == "__main__":
    unittest.main()
