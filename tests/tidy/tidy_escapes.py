# SPDX-License-Identifier: Apache-2.0
"""A foreign string reaches an output through the escaper of its format alone: nothing else writes
JSON, calls a text escaped, or spells the marks of a format."""

import re

FOLDER = "src/core/text/"
LIBRARY = ("src/", "calibrate/")
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')

# Writers that put escaped parts together, and lines that are escaped whole.
MAY_CALL_ESCAPED = {
    "src/cli/check.cpp", "src/cli/export.cpp", "src/cli/gate.cpp", "src/cli/session.cpp",
    "src/report/document_form.cpp", "src/report/html/page.cpp", "src/report/junit.cpp",
    "src/report/memory_timeline.cpp", "src/report/prediction_table.cpp",
    "src/report/replay_trace.cpp", "src/report/screen.cpp", "src/report/text_table.cpp",
    "src/report/topology_graph.cpp", "src/report/trace.cpp",
    "src/validate/json_lines.cpp", "src/validate/suite_file.cpp"}
# JsonValue::dump() is the short form for messages, and these ask values of a file for it.
MAY_DUMP_SHORTLY = {
    "calibrate/fit/published.cpp", "calibrate/fit/table_row.cpp",
    "calibrate/import/import_tables.cpp", "src/cli/rank_results.cpp",
    "src/cluster/cluster.cpp",
    "src/core/json.cpp", "src/cost/collective_curve.cpp", "src/cost/mpi_curve.cpp",
    "src/cost/profile_curves.cpp", "src/layout/scenario.cpp", "src/validate/baseline.cpp",
    "src/validate/rank_file.cpp", "src/validate/suite.cpp", "src/validate/validation_baseline.cpp"}
MARKS = [
    (re.compile(r"(?:\\n|^)#{2,6} |\*\*"), "Markdown", {"src/report/document_form.cpp",
                                                        "src/report/check_table.cpp"}),
    (re.compile(r"\\x1b|\\033|\\e\["), "the terminal's colors", {
        "src/report/document_form.cpp", "src/report/prediction_table.cpp",
        "src/cli/session.cpp", "src/recipes/shell_words.cpp"}),
    (re.compile(r"&(?:lt|gt|amp|quot|#\d+);"), "markup", set()),
    (re.compile(r"^::(?:error|warning|notice)|::\{\} "), "GitHub's commands", set()),
]


def offences(name, line):
    code = line.split("//")[0] if line.lstrip().startswith("//") else line
    if re.search(r"(?:\.|->)dump\(\s*[^)\s]", code) or (
            re.search(r"(?:\.|->)dump\(\s*\)", code) and name not in MAY_DUMP_SHORTLY):
        yield "JSON is written by json_text, which keeps control characters and bad bytes out"
    if "Written::escaped(" in code and name not in MAY_CALL_ESCAPED:
        yield "only a writer that escapes each foreign string may call its text escaped"
    for text in TEXT.findall(code):
        for pattern, what, known in MARKS:
            if pattern.search(text[1:-1]) and name not in known:
                yield f"the marks of {what} are written where names are escaped for them"


def check(tree):
    for file in tree.sources():
        name = tree.name(file)
        if not name.startswith(LIBRARY) or name.startswith(FOLDER):
            continue
        for number, line in enumerate(file.read_text().split("\n"), 1):
            for what in offences(name, line):
                yield f"{name}:{number}: {what}"
