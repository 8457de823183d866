#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lays out the pages of the site: the Markdown of the tree in its own folders, so that links hold,
and for each file of code or folder that a page links to a page that shows it.

    site/lay_out.py ROOT TARGET

Fails where a link leads nowhere, or where a page of docs/ is missing in site/mkdocs.yml.
"""
import os
import pathlib
import re
import shutil
import sys

LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs")


class Layout:
    def __init__(self, root: pathlib.Path, target: pathlib.Path):
        self.root, self.target = root.resolve(), target
        self.waiting: list[pathlib.Path] = []
        self.done: set[pathlib.Path] = set()
        self.faults: list[str] = []

    def run(self) -> list[str]:
        for name in PAGES:
            path = self.root / name
            self.waiting += sorted(path.rglob("*.md")) if path.is_dir() else [path]
        while self.waiting:
            path = self.waiting.pop()
            if path not in self.done:
                self.done.add(path)
                self.add(path)
        shutil.copyfile(self.root / "site/site.css", self.target / "site.css")
        self.add_planner(self.root / "build/web/planner.html")
        self.check_contents()
        return self.faults

    def add_planner(self, planner: pathlib.Path) -> None:
        """The first page has the planner behind its first words, where scripts/build-web.sh has
        made it."""
        if not planner.is_file():
            return
        shutil.copyfile(planner, self.target / "planner.html")
        page = self.target / "index.md"
        title, opening, rest = page.read_text().split("\n\n", 2)
        frame = '<iframe class="planner" src="planner.html" title="Planner"></iframe>'
        link = "[The planner on a page of its own](planner.html)"
        page.write_text("\n\n".join([title, opening, frame, link, rest]))

    def page_of(self, path: pathlib.Path) -> pathlib.Path:
        """The page that shows it, from the root of the site."""
        own = path.relative_to(self.root)
        if path.is_dir():
            readme = path / "README.md"
            return self.page_of(readme) if readme.is_file() else own / "index.md"
        if path.name == "README.md":
            return own.with_name("index.md")
        # mkdocs passes over folders and files whose name begins with a dot.
        own = pathlib.Path(*(part.lstrip(".") for part in own.parts))
        shown = path.suffix in (".md", ".png", ".svg")
        return own if shown else own.with_name(own.name + ".md")

    def add(self, path: pathlib.Path) -> None:
        page = self.target / self.page_of(path)
        page.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".png", ".svg"):
            shutil.copyfile(path, page)
        elif path.is_dir():
            if not (path / "README.md").is_file():
                page.write_text(self.listing(path))
            else:
                self.waiting.append(path / "README.md")
        elif path.suffix == ".md":
            page.write_text(LINK.sub(lambda link: self.moved(path, link), path.read_text()))
        else:
            page.write_text(self.shown(path))

    def moved(self, page: pathlib.Path, link: re.Match) -> str:
        """The link as it stands on the site."""
        where = link[2]
        if re.match(r"[a-z]+:", where):
            return link[0]
        target = (page.parent / where).resolve()
        if not target.exists() or not target.is_relative_to(self.root):
            self.faults.append(f"{page.relative_to(self.root)}: {where} leads nowhere")
            return link[0]
        self.waiting.append(target)
        here = self.page_of(page).parent
        return link[1] + os.path.relpath(self.page_of(target), here) + (link[3] or "") + link[4]

    def listing(self, folder: pathlib.Path) -> str:
        rows = []
        for path in sorted(folder.glob("*.md")):
            self.waiting.append(path)
            title = re.sub(r"^#\s*", "", path.read_text().split("\n", 1)[0])
            rows.append(f"- [{title}]({path.name})")
        return "\n".join([f"# {folder.relative_to(self.root)}", "", *rows, ""])

    def shown(self, path: pathlib.Path) -> str:
        fence = "`" * 8
        return f"# {path.relative_to(self.root)}\n\n{fence}\n{path.read_text()}\n{fence}\n"

    def check_contents(self) -> None:
        listed = (self.root / "site/mkdocs.yml").read_text()
        for path in sorted((self.root / "docs").rglob("*.md")):
            own = path.relative_to(self.root).as_posix()
            if path.name != "README.md" and f"- {own}\n" not in listed:
                self.faults.append(f"site/mkdocs.yml: {own} is missing among its pages")


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    target = pathlib.Path(sys.argv[2])
    shutil.rmtree(target, ignore_errors=True)
    faults = Layout(pathlib.Path(sys.argv[1]), target).run()
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
