#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTML reports of the built program in a real browser: no complaint on the console, no request,
sorting and filtering by keyboard, themes, narrow screens, print.

    browser_test.py --bin FOLDER

Exits 77, which ctest counts as skipped, where no Chromium is installed.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

import browser

BIN = None
TAB, ENTER = ("Tab", 9), ("Enter", 13)

FORECAST = ["predict", "--model", "llama-3.1-8b", "--cluster", "dgx-h100x2", "--global-batch",
            "64", "--seq", "4096", "--tp", "2", "--pp", "4", "--schedule", "interleaved", "--vpp",
            "2"]
PLAN = ["plan", "--model", "gpt3-1.3b", "--cluster", "dgx-a100-80gx1", "--global-batch", "16",
        "--seq", "1024", "--recompute", "none", "--why-not", "tp=8", "--front", "2"]
COMPARISON = ["compare", *FORECAST[1:7], "--seq", "4096", "--tp", "2", "--vary",
              "layout.pp=1,2", "--vary", "layout.zero=0,1", "--what-if", "nic=+50%", "--tornado",
              "20"]
SCALING = ["compare", *FORECAST[1:7], "--seq", "4096", "--tp", "2", "--vary",
           "cluster.nodes=1,2,4", "--vary", "layout.zero=0,1", "--scaling", "strong"]
OFFERS = ["plan", *PLAN[1:3], *PLAN[5:9], "--clusters", "dgx-h100,dgx-a100-80g", "--gpus", "4,8",
          "--tokens", "10B", "--deadline", "3d", "--objective", "cost"]
MANY = ["predict", "--model", "gpt3-13b", "--cluster", "dgx-h100x2", "--global-batch", "256",
        "--tp", "2", "--pp", "8", "--micro-batch", "1"]
CHECK = ["check", "megatron-core-h100", "--threads", "1"]


def column(table, index):
    return (f"[...document.querySelectorAll('#{table} tbody tr')].filter(r => !r.hidden)"
            f".map(r => r.cells[{index}].dataset.value ?? r.cells[{index}].textContent)")


class InABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.pages = {}
        for name, words in (("forecast", FORECAST), ("check", CHECK), ("plan", PLAN),
                            ("offers", OFFERS), ("comparison", COMPARISON), ("scaling", SCALING),
                            ("many", MANY)):
            cls.pages[name] = str(pathlib.Path(cls.folder.name) / f"{name}.html")
            subprocess.run([BIN / "stepcast", *words, "--html", cls.pages[name]], check=True,
                           stdout=subprocess.DEVNULL)
        cls.browser = cls.enterClassContext(browser.Browser(browser.program()))

    def tearDown(self):
        self.browser.evaluate("localStorage.clear()")  # the theme

    def open(self, name, **how):
        self.browser.open(self.pages[name], **how)
        return self.browser

    def test_opens_without_a_complaint_and_without_a_request(self):
        for name, path in self.pages.items():
            for scheme in ("light", "dark"):
                page = self.open(name, scheme=scheme)
                self.assertTrue(page.evaluate("document.documentElement.matches('.scripted')"))
                page.evaluate("document.querySelectorAll('button:not(.save)')"
                              ".forEach(button => button.click())")
                self.assertEqual(page.complaints, [])
                self.assertEqual(page.requests, [f"file://{path}"])

    def test_the_policy_keeps_other_scripts_and_requests_out(self):
        page = self.open("forecast")
        page.evaluate("document.body.append(Object.assign(document.createElement('script'), "
                      "{textContent: 'window.ran = true'}))")
        self.assertFalse(page.evaluate("window.ran === true"))
        self.assertTrue(page.evaluate(
            "fetch('https://example.org/').then(() => false, () => true)"))
        self.assertTrue(page.complaints)

    def test_a_table_sorts_by_keyboard_alone(self):
        page = self.open("forecast")
        page.evaluate("document.querySelectorAll('#path-steps th .sort')[0].focus()")
        page.press(*TAB)  # on to the next title that sorts
        self.assertEqual(page.evaluate("document.activeElement.textContent"), "seconds")
        for order, sign in (("descending", -1), ("ascending", 1)):
            page.press(*ENTER, text="\r")
            self.assertEqual(page.evaluate(
                "document.activeElement.closest('th').getAttribute('aria-sort')"), order)
            values = [float(value) for value in page.evaluate(column("path-steps", 2))]
            self.assertGreater(len(values), 2)
            self.assertEqual(values, sorted(values, key=lambda v: sign * v))

    def test_places_sort_by_keyboard(self):
        page = self.open("plan")
        page.evaluate("document.querySelectorAll('#places th .sort')[4].focus()")
        self.assertEqual(page.evaluate("document.activeElement.textContent"), "GiB")
        page.press(*ENTER, text="\r")
        values = [float(value) for value in page.evaluate(column("places", 4))]
        self.assertGreater(len(values), 5)
        self.assertEqual(values, sorted(values, reverse=True))

    def test_arrow_keys_go_from_point_to_point_and_say_the_layout(self):
        page = self.open("plan")
        chart = "[...document.querySelectorAll('.points')].find(c => c.checkVisibility())"
        said = f"({chart}).querySelector('.said').textContent"
        place = f"({chart}).querySelector('.chosen').getBBox().x"
        page.evaluate(f"({chart}).querySelector('.scroll').focus()")
        count = page.evaluate(f"({chart}).querySelectorAll('.point').length")
        page.press("Home", 36)
        heard, before = [], 0
        for _ in range(count):
            heard.append(page.evaluate(said))
            self.assertGreaterEqual(page.evaluate(place), before)  # from left to right
            before = page.evaluate(place)
            page.press("ArrowRight", 39)
        self.assertEqual(page.evaluate(f"({chart}).querySelectorAll('.chosen').length"), 1)
        titles = page.evaluate(f"[...({chart}).querySelectorAll('.point title')]"
                               ".map(t => t.textContent)")
        self.assertEqual(sorted(heard), sorted(titles))
        self.assertTrue(all("tp" in title and "GiB" in title for title in titles))

    def test_a_chart_takes_other_colours_by_keyboard_without_other_points(self):
        page = self.open("plan")
        shown = ("[...document.querySelectorAll('#replayed-views > .view')]"
                 ".map(v => v.checkVisibility())")
        count = len(page.evaluate(shown))
        self.assertGreater(count, 1)
        self.assertEqual(page.evaluate(shown), [True] + [False] * (count - 1))
        titles = ("[...document.querySelectorAll('#replayed-views > .view')]"
                  ".find(v => v.checkVisibility()).querySelectorAll('.point').length")
        before = page.evaluate(titles)
        page.evaluate("document.querySelector('#replayed-views input').focus()")
        page.press("ArrowRight", 39)
        self.assertEqual(page.evaluate(shown)[:2], [False, True])
        self.assertEqual(page.evaluate(titles), before)

    def test_words_sort_as_words(self):
        page = self.open("check")
        page.evaluate("document.querySelectorAll('#cases th .sort')[0].click()")
        names = page.evaluate(column("cases", 0))
        self.assertEqual(names, page.evaluate(
            f"({column('cases', 0)}).toSorted((a, b) => a.localeCompare(b, 'en', "
            "{numeric: true}))"))

    def test_a_filter_keeps_the_rows_with_all_its_words(self):
        page = self.open("check")
        every = page.evaluate(column("cases", 0))
        word = every[0]
        page.evaluate("(i => { i.value = " + repr(word.upper()) + "; "
                      "i.dispatchEvent(new Event('input')); })"
                      "(document.querySelector('.filter'))")
        kept = page.evaluate(column("cases", 0))
        self.assertIn(word, kept)
        self.assertTrue(all(word in name for name in kept))
        self.assertLess(len(kept), len(every))
        count = page.evaluate("document.querySelector('#case-section .count').textContent")
        self.assertEqual(count, f"{len(kept)} of {len(every)}")

    def test_zoom_shows_more_numbers(self):
        page = self.open("forecast")
        shown = ("[...document.querySelectorAll('#pipeline-picture text.n')]"
                 ".filter(t => getComputedStyle(t).display !== 'none').length")
        width = "document.getElementById('pipeline-picture').getBoundingClientRect().width"
        page.evaluate("document.querySelectorAll('.zoom button')[1].click()")  # the whole step
        before, narrow = page.evaluate(shown), page.evaluate(width)
        page.evaluate("document.querySelector('.zoom button:last-of-type').click()")
        page.evaluate("document.querySelector('.zoom button:last-of-type').click()")
        self.assertGreater(page.evaluate(shown), before)
        self.assertAlmostEqual(page.evaluate(width), 4 * narrow, delta=2)

    def test_many_passes_open_where_the_pipeline_fills(self):
        """At a zoom at which numbers are read, from the step's begin, and whole by one button."""
        page = self.open("many")
        shown = ("[...document.querySelectorAll('#pipeline-picture text.n')]"
                 ".filter(t => getComputedStyle(t).display !== 'none').length")
        box = "document.querySelector('.pipeline .rows')"
        self.assertGreater(page.evaluate(shown), 500)
        self.assertEqual(page.evaluate(f"{box}.scrollLeft"), 0)
        first = "document.querySelector('#pipeline-picture text.n').getBoundingClientRect()"
        self.assertLess(page.evaluate(f"{first}.right"), 1024)
        self.assertGreater(page.evaluate(f"{box}.scrollWidth / {box}.clientWidth"), 4)
        page.evaluate("document.querySelectorAll('.zoom button')[1].click()")
        self.assertLessEqual(page.evaluate(f"{box}.scrollWidth / {box}.clientWidth"), 1.01)

    def test_a_phone_shows_charts_whole_and_what_offers_cost(self):
        for name in ("offers", "plan", "scaling", "check"):
            page = self.open(name, width=390)
            charts = page.evaluate(
                "[...document.querySelectorAll('.chart, .rows > .zoom-1')]"
                ".filter(c => c.checkVisibility())"
                ".map(c => { const b = c.getBoundingClientRect(); return [b.left, b.right]; })")
            self.assertGreater(len(charts), 0, name)
            for left, right in charts:
                self.assertGreaterEqual(left, 0, name)
                self.assertLessEqual(right, 390, name)
        page = self.open("offers", width=390)
        cost = ("[...document.querySelectorAll('#offers thead th')]"
                ".find(t => t.textContent.trim() === 'cost').getBoundingClientRect()")
        self.assertLessEqual(page.evaluate(f"{cost}.right"), 390)

    def test_the_layouts_of_offers_are_seen_without_scrolling(self):
        page = self.open("offers", width=1280)
        table = "document.querySelector('#offers').parentElement"
        self.assertLessEqual(page.evaluate(f"{table}.scrollWidth - {table}.clientWidth"), 1)

    def test_the_theme_follows_the_system_until_it_is_switched(self):
        color = "getComputedStyle(document.body).backgroundColor"
        light = self.open("forecast", scheme="light").evaluate(color)
        dark = self.open("forecast", scheme="dark").evaluate(color)
        self.assertNotEqual(light, dark)
        self.browser.evaluate("document.getElementById('theme').click()")
        self.assertEqual(self.browser.evaluate(color), light)
        self.browser.evaluate("document.getElementById('theme').click()")
        self.assertEqual(self.browser.evaluate(color), dark)

    def test_no_page_scrolls_sideways(self):
        for name in self.pages:
            for width in (1600, 1280, 1024, 400):
                page = self.open(name, width=width)
                page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
                self.assertLessEqual(
                    page.evaluate("document.documentElement.scrollWidth"), width, (name, width))

    def test_text_stands_out_from_its_ground(self):
        """A contrast of 4.5 to 1 for all text that is no label inside a picture (WCAG 2.1, AA)."""
        script = """(() => {
          const parse = c => c.match(/[\\d.]+/g).map(Number);
          const light = c => { const [r, g, b] = parse(c).map(v => v / 255)
              .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
            return .2126 * r + .7152 * g + .0722 * b; };
          const ground = e => { for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;
            if (parse(c).length < 4 || parse(c)[3] > 0) return c; } return 'rgb(255,255,255)'; };
          const poor = [];
          for (const e of document.querySelectorAll('p, td, th, a, button, summary, dt, dd, pre')) {
            if (e.matches(':disabled') || !e.textContent.trim()) continue;
            const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
            const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
            if (ratio < 4.5) poor.push(e.tagName + ' ' + e.className + ' ' + ratio.toFixed(2));
          }
          return [...new Set(poor)]; })()"""
        for name in self.pages:
            for scheme in ("light", "dark"):
                self.assertEqual(self.open(name, scheme=scheme).evaluate(script), [], scheme)

    def test_prints_in_light_colours_and_whole(self):
        page = self.open("check", scheme="dark")
        page.call("Emulation.setEmulatedMedia", media="print", features=[])
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"),
                         "rgb(255, 255, 255)")
        self.assertEqual(page.evaluate("getComputedStyle(document.querySelector('nav')).display"),
                         "none")
        self.assertTrue(page.evaluate(
            "[...document.querySelectorAll('.tall')].every(e => e.scrollHeight <= e.clientHeight "
            "+ 1)"))

    def test_paper_is_wide_enough(self):
        paper = 718  # pixels, of A4 between margins of a centimetre
        for name in ("forecast", "plan", "comparison", "scaling"):
            page = self.open(name, width=paper)
            page.call("Emulation.setEmulatedMedia", media="print", features=[])
            self.assertLessEqual(
                page.evaluate("document.documentElement.scrollWidth"), paper, name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    if browser.program() is None:
        print("skipped: none of " + ", ".join(browser.NAMES) + " is installed")
        sys.exit(77)
    BIN = arguments.bin
    unittest.main(argv=[sys.argv[0], *rest])
