#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the planner into one file: the page, the style and the script of reports, and the module.

    pack_page.py --module build/web/stepcast --output planner.html

The page's content policy names the very bytes of its scripts, and forbids every request.
"""

import argparse
import base64
import gzip
import hashlib
import pathlib

WEB = pathlib.Path(__file__).resolve().parent
REPORTS = WEB.parent / "src" / "report" / "html"


def source(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def in_script(text):
    """Inside an element no text may end it."""
    assert "<!--" not in text and "</script" not in text.lower(), "a text that would end a script"
    return text


def packed(module):
    style = (REPORTS / "page.css").read_text() + (WEB / "planner.css").read_text()
    script = in_script((REPORTS / "page.js").read_text() + (WEB / "planner.js").read_text())
    binary = gzip.compress(module.with_suffix(".wasm").read_bytes(), 9, mtime=0)
    worker = in_script(f'const kModule = "{base64.b64encode(binary).decode()}";\n' +
                       module.with_suffix(".js").read_text() + (WEB / "worker.js").read_text())
    policy = ("default-src 'none'; base-uri 'none'; form-action 'none'; "
              f"style-src {source(style)}; worker-src blob:; "
              f"script-src {source(script)} blob: 'wasm-unsafe-eval'")
    page = (WEB / "index.html").read_text()
    for name, text in (("policy", policy), ("style", style), ("worker", worker),
                       ("script", script)):
        assert page.count(f"@{name}@") == 1, name
        page = page.replace(f"@{name}@", text)
    return page


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--module", type=pathlib.Path, required=True,
                        help="of which .js and .wasm are there")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    page = packed(arguments.module).encode()
    arguments.output.write_bytes(page)
    print(f"{arguments.output}: {len(page)} bytes, {len(gzip.compress(page, 9))} compressed")


if __name__ == "__main__":
    main()
