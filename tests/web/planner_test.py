#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The planner in a headless browser, opened from the disk: every control is used as a reader uses
it, on a desk and on a phone, and nothing is asked of a network.

    planner_test.py --web build/web [--screenshots FOLDER]

Exits 77, which ctest counts as skipped, where no Chromium is installed.
"""

import argparse
import json
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "html"))
import browser  # noqa: E402  pylint: disable=wrong-import-position

OPTIONS = None
PAGE = None
ARROWS = {"ArrowRight": 39, "ArrowLeft": 37}
CONFIG = {"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
          "num_attention_heads": 16, "num_key_value_heads": 8, "intermediate_size": 5632,
          "vocab_size": 32000, "max_position_embeddings": 4096}
MIXTURE = {"stepcast": 1, "model": "mixtral-8x7b", "cluster": "dgx-h100x2",
           "training": {"global_batch": 64, "sequence_length": 4096}, "layout": {"tp": 2}}


class Planner(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser(browser.program(), timeout=180)
        cls.browser.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__(None, None, None)

    def look(self, expression):
        return self.browser.evaluate(expression)

    def wait(self, expression, seconds=120):
        end = time.monotonic() + seconds
        while not self.look(f"Boolean({expression})"):
            self.assertLess(time.monotonic(), end, f"never came: {expression}")
            time.sleep(0.05)

    def open(self, width=1280, height=900, scheme="light", address=""):
        self.browser.open(PAGE, width, height, scheme)
        if address:
            self.look(f"window.before = true; location.hash = {json.dumps(address)}")
            self.browser.call("Page.reload")
        self.wait("!window.before && document.body?.dataset.answers > 0")

    def after(self, action):
        """The page once it has answered to an action."""
        before = self.look("Number(document.body.dataset.answers)")
        action()
        self.wait(f"Number(document.body.dataset.answers) > {before} && !asked && !newer")

    def scenario(self):
        return json.loads(self.look("JSON.stringify(scenario)"))

    def step_time(self):
        return float(self.look("document.body.dataset.stepTime"))

    def arrow(self, slider, key):
        def press():
            self.look(f"document.getElementById('slide-{slider}').focus()")
            self.browser.press(key, ARROWS[key])
        self.after(press)

    def change(self, control, value, event="input"):
        self.after(lambda: self.look(
            f"(() => {{ const c = document.getElementById('{control}'); c.value = "
            f"{json.dumps(str(value))}; c.dispatchEvent(new Event('{event}')); }})()"))

    def click(self, control):
        x, y = self.look(
            f"(() => {{ const c = document.getElementById('{control}'); "
            "c.scrollIntoView({block: 'center'}); const b = c.getBoundingClientRect(); "
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                              clickCount=1)

    def picture(self, name):
        if OPTIONS.screenshots:
            OPTIONS.screenshots.mkdir(parents=True, exist_ok=True)
            size = self.look("[document.documentElement.scrollWidth, "
                             "document.documentElement.scrollHeight]")
            self.browser.screenshot(OPTIONS.screenshots / f"{name}.png", (0, 0, *size))

    def assert_quiet(self):
        self.assertEqual(self.browser.complaints, [])
        asked = [url for url in self.browser.requests if not url.startswith(("file:", "blob:"))]
        self.assertEqual(asked, [])

    def test_first_forecast_has_every_picture(self):
        for scheme in ("light", "dark"):
            self.open(scheme=scheme)
            self.assertIn("fits", self.look(
                "document.querySelector('#answer .verdict').textContent"))
            for section in ("time", "pipeline", "memory"):
                self.assertGreater(
                    self.look(f"document.querySelectorAll('#{section} svg').length"), 0)
            self.assertTrue(self.look("document.getElementById('errors').hidden"))
            self.picture("desk-" + scheme)
        self.assert_quiet()

    def test_sliders_follow_the_keyboard_and_keep_the_gpus(self):
        self.open()
        first = self.step_time()
        self.arrow("tp", "ArrowLeft")
        self.assertEqual(self.scenario()["layout"]["tp"], 4)
        self.assertEqual(self.look("ranksOfData()"), 4)
        self.assertNotEqual(self.step_time(), first)
        self.arrow("dp", "ArrowLeft")
        self.assertEqual(self.look("ranksOfData()"), 2)
        self.assertEqual(self.scenario()["layout"]["pp"], 8)
        self.arrow("cp", "ArrowRight")
        self.assertEqual(self.scenario()["layout"]["cp"], 2)
        self.assertEqual(self.look("gpus() / (degree('tp') * degree('cp') * degree('pp'))"), 1)
        self.arrow("micro_batch", "ArrowRight")
        self.assertEqual(self.scenario()["layout"]["micro_batch"], 2)
        self.arrow("recompute", "ArrowRight")
        self.assertEqual(self.scenario()["layout"]["recompute"], "selective")
        self.arrow("zero", "ArrowRight")
        self.assertEqual(self.scenario()["layout"]["zero"], 0)
        self.assertEqual(
            self.look("document.getElementById('slide-recompute').getAttribute('aria-valuetext')"),
            "selective")
        self.assert_quiet()

    def test_command_line_is_the_scenario(self):
        self.open()
        self.change("batch", 256)
        self.change("nodes", 4)
        self.assertEqual(
            self.look("document.getElementById('command').textContent"),
            "stepcast predict --model llama-3.1-70b --cluster dgx-h100x4 --global-batch 256 "
            "--seq 4096 --tp 8 --pp 4")

    def test_dropped_config_is_forecast(self):
        self.open()
        first = self.step_time()
        self.after(lambda: self.look(
            "(() => { const data = new DataTransfer(); data.items.add(new File(["
            f"{json.dumps(json.dumps(CONFIG))}], 'tiny.json', {{type: 'application/json'}})); "
            "dispatchEvent(new DragEvent('drop', {dataTransfer: data, cancelable: true})); })()"))
        self.assertLess(self.step_time(), first)
        self.assertIn("tiny", self.look("document.getElementById('model').selectedOptions[0].text"))
        self.assertEqual(self.scenario()["model"]["hidden_size"], 2048)
        self.assert_quiet()

    def test_file_that_is_no_config_is_refused_in_words(self):
        self.open()
        self.look("takeFile(new File(['{'], 'broken.json'))")
        self.wait("!document.getElementById('errors').hidden")
        self.assertIn("broken.json", self.look("document.getElementById('errors').textContent"))
        self.after(lambda: self.look("void takeFile(new File(['{\"a\": 1}'], 'other.json'))"))
        self.assertIn("layers", self.look("document.getElementById('errors').textContent"))

    def test_experts_have_a_slider_where_there_are_any(self):
        self.open()
        self.assertTrue(self.look("document.getElementById('slide-ep').disabled"))
        address = self.look(f"toAddress({json.dumps(MIXTURE)})")
        self.after(lambda: self.look(f"location.hash = '{address}'"))
        self.assertFalse(self.look("document.getElementById('slide-ep').disabled"))
        self.arrow("ep", "ArrowRight")
        self.assertEqual(self.scenario()["layout"]["ep"], 2)

    def test_mistakes_name_their_remedy_and_the_last_answer_stays(self):
        self.open()
        self.change("batch", 7)
        self.wait("!document.getElementById('errors').hidden")
        self.assertIn("global_batch", self.look("document.getElementById('errors').textContent"))
        self.assertGreater(self.look("document.querySelectorAll('#pipeline svg').length"), 0)
        self.change("batch", 128)
        self.assertTrue(self.look("document.getElementById('errors').hidden"))

    def test_link_brings_the_scenario_back(self):
        self.open()
        self.arrow("tp", "ArrowLeft")
        scenario, step_time = self.scenario(), self.step_time()
        self.click("copy-link")
        self.wait("document.getElementById('copied').textContent")
        address = self.look("location.hash")
        self.open(address=address)
        self.assertEqual(self.scenario(), scenario)
        self.assertEqual(self.step_time(), step_time)

    def test_search_finds_a_layout_that_is_no_slower(self):
        self.open()
        address = self.look(f"toAddress({json.dumps({**MIXTURE, 'model': 'llama-3.1-8b'})})")
        self.after(lambda: self.look(f"location.hash = '{address}'"))
        first = self.step_time()
        self.look("document.getElementById('limit').value = 20")
        self.after(lambda: self.click("search"))
        self.assertGreater(self.look("document.querySelectorAll('#places tbody tr').length"), 1)
        self.assertLessEqual(self.step_time(), first)
        self.assertTrue(self.look("document.getElementById('told').textContent"))
        self.picture("found")
        self.after(lambda: self.look(
            "document.querySelectorAll('#places tbody button')[1].click()"))
        self.assert_quiet()

    def test_search_that_is_stopped_keeps_its_best(self):
        self.open()
        self.look("document.getElementById('limit').value = 600")
        self.click("search")
        self.wait("search && search.best")
        self.after(lambda: self.click("stop"))
        self.assertIn("stopped", self.look("document.getElementById('told').textContent"))
        self.assertFalse(self.look("document.getElementById('search').disabled"))
        self.assertIn("micro_batch", self.scenario()["layout"])
        self.assert_quiet()

    def test_kept_scenarios_are_compared(self):
        self.open()
        self.click("keep")
        self.arrow("tp", "ArrowLeft")
        self.click("compare")
        self.wait("document.querySelectorAll('#comparison section').length > 1")
        self.assertIn("layout.tp", self.look("document.getElementById('comparison').textContent"))
        self.assertEqual(self.look(
            "(() => { const ids = [...document.querySelectorAll('[id]')].map((one) => one.id); "
            "return ids.length - new Set(ids).size; })()"), 0)
        self.picture("compared")
        self.assert_quiet()

    def test_phone_shows_all_without_scrolling_sideways(self):
        for scheme in ("light", "dark"):
            self.open(390, 844, scheme)
            self.assertLessEqual(self.look("document.documentElement.scrollWidth"), 390)
            self.arrow("pp", "ArrowLeft")
            self.picture("phone-" + scheme)
        self.assert_quiet()

    def test_controls_have_names(self):
        self.open()
        nameless = self.look(
            "[...document.querySelectorAll('input, select, textarea, button')].filter((one) => "
            "!(one.labels?.length || one.getAttribute('aria-label') || "
            "one.textContent.trim())).map((one) => one.outerHTML)")
        self.assertEqual(nameless, [])
        self.assertGreater(self.look("document.querySelectorAll('input[type=range]').length"), 7)


def main():
    global OPTIONS, PAGE
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--web", type=pathlib.Path, required=True)
    parser.add_argument("--native", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    OPTIONS, rest = parser.parse_known_args()
    if browser.program() is None:
        print("skipped: no Chromium")
        sys.exit(77)
    PAGE = OPTIONS.web.resolve() / "planner.html"
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
