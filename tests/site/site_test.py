#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The site of the documentation: what lays its pages out, what checks them, and the whole of it."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "site"))
import check_links  # noqa: E402
import lay_out  # noqa: E402


def write(folder: pathlib.Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class LaysOutPages(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name) / "tree"
        self.target = pathlib.Path(holder.name) / "source"
        write(self.root, {
            "README.md": "# A\n\nFirst words.\n\n"
                         "[page](docs/page.md#part) [code](src/a.cpp) [list](notes)\n",
            "CHANGELOG.md": "# Changes\n", "CONTRIBUTING.md": "# How\n",
            "docs/page.md": "# Page\n## Part\n[up](../README.md) [hidden](../.ci/run)\n",
            "src/a.cpp": "int a;\n", "notes/one.md": "# One\n", ".ci/run": "true\n",
            "site/mkdocs.yml": "nav:\n  - docs/page.md\n", "site/site.css": "",
        })

    def faults(self) -> list[str]:
        return lay_out.Layout(self.root, self.target).run()

    def test_shows_what_pages_link_to(self):
        self.assertEqual(self.faults(), [])
        home = (self.target / "index.md").read_text()
        self.assertIn("(docs/page.md#part)", home)
        self.assertIn("(src/a.cpp.md)", home)
        self.assertIn("(notes/index.md)", home)
        self.assertIn("int a;", (self.target / "src/a.cpp.md").read_text())
        self.assertIn("[One](one.md)", (self.target / "notes/index.md").read_text())
        page = (self.target / "docs/page.md").read_text()
        self.assertIn("(../index.md)", page)
        self.assertIn("(../ci/run.md)", page)  # mkdocs passes over names that begin with a dot

    def test_first_page_has_the_planner_where_there_is_one(self):
        self.assertEqual(self.faults(), [])
        self.assertNotIn("planner", (self.target / "index.md").read_text())
        write(self.root, {"build/web/planner.html": "<p>planner</p>"})
        self.assertEqual(self.faults(), [])
        home = (self.target / "index.md").read_text()
        self.assertTrue(home.startswith("# A\n\nFirst words.\n\n<iframe "), home)
        self.assertIn('src="planner.html"', home)
        self.assertIn("](planner.html)", home)
        self.assertEqual((self.target / "planner.html").read_text(), "<p>planner</p>")

    def test_names_a_link_that_leads_nowhere(self):
        write(self.root, {"docs/page.md": "[gone](gone.md) [out](../../out.md)\n"})
        self.assertEqual(self.faults(), ["docs/page.md: gone.md leads nowhere",
                                         "docs/page.md: ../../out.md leads nowhere"])

    def test_names_a_page_that_the_contents_lack(self):
        write(self.root, {"docs/new.md": "# New\n"})
        self.assertEqual(self.faults(),
                         ["site/mkdocs.yml: docs/new.md is missing among its pages"])


class ChecksLinks(unittest.TestCase):
    def faults(self, page: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            write(pathlib.Path(folder), {"index.html": page,
                                         "other.html": '<h1 id="here">x</h1>'})
            return check_links.faults_of(pathlib.Path(folder).resolve())

    def test_passes_over_what_holds(self):
        self.assertEqual(self.faults('<a href="other.html#here">x</a><a href="https://e.org">'), [])

    def test_names_what_leads_nowhere_and_what_is_loaded(self):
        self.assertEqual(
            self.faults('<a href="gone.html"><a href="other.html#gone">'
                        '<script src="https://e.org/a.js"></script>'),
            ["index.html: gone.html leads nowhere",
             "index.html: other.html#gone has no such heading",
             "index.html: loads https://e.org/a.js"])

    def test_a_folder_without_pages_is_a_fault(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(len(check_links.faults_of(pathlib.Path(folder))), 1)


class Site(unittest.TestCase):
    def test_is_built_with_every_page(self):
        done = subprocess.run([ROOT / "scripts/build-site.sh"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        pages = ROOT / "build/site/html"
        for page in ["index.html", "docs/plan.html", "docs/formats/scenario.html"]:
            self.assertIn("<h1", (pages / page).read_text())
        index = (pages / "search/search_index.json").read_text()
        self.assertIn("docs/plan.html", index)


if __name__ == "__main__":
    unittest.main()
