#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The faults that scripts/mutants.py plants are the ones that it says."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import mutants  # noqa: E402


class Faults(unittest.TestCase):
    def of(self, line):
        return {new for _, new in mutants.mutations_of(line)}

    def test_signs_terms_and_constants(self):
        self.assertEqual(
            {"x = a - b * 2;", "x = a;", "x = a + b / 2;", "x = a + b * 3;"},
            self.of("x = a + b * 2;"))
        self.assertIn("x = (2 * 1.5) * a;", self.of("x = 1.5 * a;"))
        self.assertIn("f(a, c);", self.of("f(a - b(1), c);"))

    def test_comparisons_and_conditions(self):
        self.assertEqual(
            {"if (a <= b && c) go();", "if (a < b) go();", "if (!(a < b && c)) go();"},
            self.of("if (a < b && c) go();"))

    def test_escapes(self):
        self.assertEqual({"out = std::string(name);"}, self.of("out = xml_content(name);"))

    def test_nothing_inside_texts_comments_or_types(self):
        for line in ('say("a + b", \'+\');', "go();  // a + b", "#include <a>",
                     "std::array<int, 3> all;", 'STEPCAST_ASSERT(a < b, "");'):
            self.assertEqual(set(), self.of(line), line)

    def test_the_seed_decides_and_every_region_has_its_turn(self):
        def some(seed):
            return [fault for _, fault in zip(range(20), mutants.drawn(ROOT, seed))]

        self.assertEqual(some(1), some(1))
        self.assertNotEqual(some(1), some(2))
        self.assertEqual(set(mutants.REGIONS), {region for region, _ in some(1)})
        for _, (file, number, _, new) in some(3):
            self.assertNotEqual((ROOT / file).read_text().split("\n")[number - 1], new)

    def test_picked_faults_are_in_the_tree_and_shown_to_tests_of_their_layer(self):
        picked = list(mutants.picked(ROOT))
        self.assertEqual(len(picked), mutants.PICKED.read_text().count("\n- "))
        self.assertGreaterEqual(len(picked), 20)
        for region, (file, number, _, new) in picked:
            self.assertNotEqual((ROOT / file).read_text().split("\n")[number - 1], new)
            long_test, quick_test = mutants.tests_of(region, file)
            layer = quick_test.removeprefix("test_")
            self.assertEqual(long_test, f"test_{layer}_long")
            where = next((folder for folder, name in mutants.FOLDERS.items() if name == layer),
                         f"src/{layer}/").removeprefix("src/")
            self.assertTrue(list((ROOT / "tests" / where).glob("*_long_test.cpp")), where)


if __name__ == "__main__":
    unittest.main()
