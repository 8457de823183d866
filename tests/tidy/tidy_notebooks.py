# SPDX-License-Identifier: Apache-2.0
"""Notebooks are committed as they are written: without outputs, in lines like those of a script."""

import json

from tidy_text import MAX_COLUMNS


def check(tree):
    for file in tree.with_suffix(".ipynb"):
        name = tree.name(file)
        try:
            cells = json.loads(file.read_text())["cells"]
        except (ValueError, KeyError) as error:
            yield f"{name}:1: no notebook: {error}"
            continue
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        if not code or "SPDX-License-Identifier: Apache-2.0" not in "".join(code[0]["source"]):
            yield f"{name}:1: no SPDX line in the first cell of code"
        for cell in cells:
            where = f"{name}: cell {cell.get('id', '?')}"
            if cell.get("outputs") or cell.get("execution_count"):
                yield f"{where}: outputs are not committed"
            for line in "".join(cell["source"]).split("\n"):
                if len(line) > MAX_COLUMNS:
                    yield f"{where}: {len(line)} columns, more than {MAX_COLUMNS}"
                if line != line.rstrip():
                    yield f"{where}: blanks at the end"
