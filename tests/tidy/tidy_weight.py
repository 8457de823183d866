# SPDX-License-Identifier: Apache-2.0
"""How many translation units parse each of the heaviest headers. A header that more units see than
its line in header_units.txt allows has come back through some other header: the finding names the
ones that hand it on most. Includes are read as text, so that no compiler is needed.
"""

import collections
import os
import pathlib

from tidy_includes import includes

ALLOWED = "tests/tidy/header_units.txt"
UNITS = ("src/", "calibrate/", "sim/", "tests/", "bench/", "bindings/")
SEARCHED = ("src/", "", "tests/")  # for a quoted include that is not beside its file
# A number may be so much above what is seen: one that nobody lowers guards nothing.
SLACK_SHARE, SLACK_UNITS = 0.1, 10
NAMED = 4


class IncludeGraph:
    """The files of ours that each file includes, and the translation units that see a header."""

    def __init__(self, tree):
        files = {tree.name(file): file for file in tree.sources()
                 if tree.name(file).startswith(UNITS)}
        self._direct = {name: self._included(name, file, files) for name, file in files.items()}
        self._including = collections.defaultdict(set)
        for name, targets in self._direct.items():
            for target in targets:
                self._including[target].add(name)

    @staticmethod
    def _included(name, file, files):
        found = []
        for _, ours, target in includes(file):
            if not ours:
                continue
            for folder in (os.path.dirname(name) + "/", *SEARCHED):
                path = os.path.normpath(folder + target)
                if path in files:
                    found.append(path)
                    break
        return found

    def has(self, name):
        return name in self._direct

    def units(self, header):
        """The .cpp files that parse a header, through whatever others."""
        seen, todo = {header}, [header]
        while todo:
            for name in self._including[todo.pop()]:
                if name not in seen:
                    seen.add(name)
                    todo.append(name)
        return {name for name in seen if name.endswith(".cpp")}

    def handed_on_by(self, header):
        """Headers that include this one, each with the units that see it, most first."""
        through = [(len(self.units(name)), name) for name in self._including[header]
                   if not name.endswith(".cpp")]
        return sorted(through, key=lambda one: (-one[0], one[1]))


def allowed(tree):
    """Line, header and number of each line of the table."""
    file = pathlib.Path(tree.root) / ALLOWED
    if not file.exists():
        return
    for number, line in enumerate(file.read_text().split("\n"), 1):
        if line and not line.startswith("#"):
            most, header = line.split()[:2]
            yield number, header, int(most)


def check(tree):
    graph = IncludeGraph(tree)
    for line, header, most in allowed(tree):
        if not graph.has(header):
            yield f"{ALLOWED}:{line}: there is no {header}"
            continue
        seen = len(graph.units(header))
        if seen > most:
            through = graph.handed_on_by(header)[:NAMED]
            why = ", ".join(f"{name} hands it on to {count}" for count, name in through)
            yield (f"{header}:1: {seen} translation units parse it, more than the {most} of "
                   f"{ALLOWED}: {why or 'each includes it itself'}; declare what is only named")
        elif most > seen * (1 + SLACK_SHARE) + SLACK_UNITS:
            yield f"{ALLOWED}:{line}: {seen} units parse {header}, far fewer than {most}: lower it"
