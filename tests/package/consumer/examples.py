#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a program of the examples in the comments of the installed headers.

    examples.py INCLUDE_FOLDER OUTPUT.cpp

Each header but stepcast.h, which only includes the others, has one example: the indented lines
behind "// Example". They become the body of a function that is handed the folder of the data and
returns errors.
"""
import pathlib
import re
import sys


def example_of(header):
    """The code of a header's example, without the comment's marks."""
    found = re.search(r"^// Example.*\n((?:^//   .*\n|^//\n)+)", header.read_text(), re.MULTILINE)
    if not found:
        sys.exit(f"{header}: the header teaches nothing: it has no '// Example'")
    return "\n".join(line[5:] for line in found.group(1).splitlines())


def main():
    folder, output = map(pathlib.Path, sys.argv[1:])
    headers = sorted(path for path in (folder / "stepcast").glob("*.h") if path.stem != "stepcast")
    if not headers:
        sys.exit(f"{folder}/stepcast: no headers are installed")
    text = "#include <cstdio>\n#include <cstdlib>\n#include <string>\n\n"
    text += '#include "stepcast/stepcast.h"\n'
    for header in headers:
        text += f"\nstatic stepcast::Errors example_of_{header.stem}("
        text += "[[maybe_unused]] const std::string& folder) {\n"
        text += f"{example_of(header)}\n  return {{}};\n}}\n"
    text += "\nint main() {\n"
    for header in headers:
        text += f'  if (const auto errors = example_of_{header.stem}(STEPCAST_DATA_DIR); '
        text += "!errors.empty()) {\n"
        text += f'    std::fprintf(stderr, "{header.name}: %s", '
        text += "stepcast::to_string(errors).c_str());\n    return 1;\n  }\n"
    text += f'  std::puts("{len(headers)} examples ran");\n}}\n'
    output.write_text(text)


main()
