#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a built site: every link and anchor within it leads somewhere, and no page loads anything
from another host.

    site/check_links.py FOLDER
"""
import html.parser
import pathlib
import sys
import urllib.parse

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}


class Page(html.parser.HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.update(value for key, value in attributes if key in ("id", "name") and value)
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if LOADED.get(tag) and values.get(LOADED[tag]) and values.get("rel") != "canonical":
            self.loaded.append(values[LOADED[tag]])


def faults_of(folder: pathlib.Path) -> list[str]:
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    faults = [] if pages else [f"{folder}: no pages"]
    for path, page in pages.items():
        here = path.relative_to(folder)
        for link in page.links + page.loaded:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded:
                    faults.append(f"{here}: loads {link}")
                continue
            if path.name == "404.html":
                continue  # its links are from the root of a host
            to = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if to.is_dir():
                to = to / "index.html"
            if not to.is_file():
                faults.append(f"{here}: {link} leads nowhere")
            elif parts.fragment and to in pages and parts.fragment not in pages[to].anchors:
                faults.append(f"{here}: {link} has no such heading")
    return faults


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    faults = faults_of(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
