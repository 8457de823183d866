# SPDX-License-Identifier: Apache-2.0
"""The files of the repository, and the layers that CMakeLists.txt declares."""

import pathlib
import re

SKIPPED = {"build", ".git", ".cache", "__pycache__", ".ipynb_checkpoints"}
HEADERS = {".h", ".cuh"}
SOURCES = {*HEADERS, ".cpp", ".cu"}
SCRIPTS = {".py", ".sh"}


class Tree:
    def __init__(self, root, compiler="c++"):
        self.root = pathlib.Path(root)
        self.compiler = compiler
        self.files = sorted(self._walk(self.root))

    def _walk(self, folder):
        for entry in folder.iterdir():
            if entry.is_dir():
                if entry.name not in SKIPPED and not entry.name.startswith("build-"):
                    yield from self._walk(entry)
            elif entry.is_file():
                yield entry

    def name(self, file):
        return file.relative_to(self.root).as_posix()

    def with_suffix(self, *suffixes):
        return [file for file in self.files if file.suffix in suffixes]

    def sources(self):
        return self.with_suffix(*SOURCES)

    def layers(self):
        """Layer -> layers that it may include, itself and what they depend on included."""
        text = (self.root / "CMakeLists.txt").read_text()
        text = re.sub(r"#.*", "", text)
        direct = {}
        for name, depends in re.findall(r"stepcast_layer\(\s*(\S+)\s+DEPENDS([^)]*)\)", text):
            direct[name] = re.split(r"\b(?:PARTS|LIBRARIES)\b", depends)[0].split()
        for folder, depends in re.findall(
                r"stepcast_program\(\s*(\S+)\s+\S+\s+DEPENDS([^)]*)\)", text):
            direct[folder] = depends.split()

        def closure(name):
            reached = {name}
            for dependency in direct[name]:
                reached |= closure(dependency)
            return reached

        return {name: closure(name) for name in direct}

    def layer_of(self, file):
        """The layer a source file of the library or the programs belongs to, or None."""
        parts = file.relative_to(self.root).parts
        if parts[0] == "src" and len(parts) > 2:
            return parts[1]
        if parts[:2] == ("calibrate", "tools"):
            return "calibrate/tools"
        if parts[0] in ("sim", "calibrate") and len(parts) == 2:
            return parts[0]
        return None
