# SPDX-License-Identifier: Apache-2.0
"""The files of the repository, and the layers that CMakeLists.txt declares."""

import functools
import pathlib
import re

SKIPPED = {"build", ".git", ".cache", "__pycache__", ".ipynb_checkpoints"}
# The public face: what is declared here is for programs of others, and named after what it is about
# like the layer behind it. The examples in its headers are what uses it (tests/package).
PUBLIC = "src/stepcast/"
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
        return {name: self._closure(name) for name in self._declared()}

    def layer_of(self, file):
        """The layer a source file of the library or the programs belongs to, or None.

        Of a folder that CMakeLists.txt does not declare, the folder's name.
        """
        parts = file.relative_to(self.root).parts
        if parts[0] == "src" and len(parts) > 2:
            return self._layer_at(parts[1:-1]) or parts[1]
        if parts[0] in ("sim", "calibrate"):
            return self._layer_at(parts[:-1])
        return None

    def included_layer(self, target):
        """The layer that owns the header that an include names, or None."""
        return self._layer_at(target.split("/")[:-1])

    def _layer_at(self, folders):
        """The innermost room that these folders lie in."""
        rooms = {room: name for name, (room, _) in self._declared().items()}
        for length in range(len(folders), 0, -1):
            found = rooms.get("/".join(folders[:length]))
            if found:
                return found
        return None

    def _closure(self, name):
        reached = {name}
        for dependency in self._declared()[name][1]:
            reached |= self._closure(dependency)
        return reached

    @functools.cache
    def _declared(self):
        """Layer or program -> its folder and the layers that it names."""
        text = (self.root / "CMakeLists.txt").read_text()
        text = re.sub(r"#.*", "", text)
        declared = {}
        for name, folder, depends in re.findall(
                r"stepcast_layer\(\s*(\S+)\s+(?:COLD\s+)?(?:FOLDER\s+(\S+)\s+)?DEPENDS([^)]*)\)",
                text):
            depends = re.split(r"\b(?:PARTS|LIBRARIES)\b", depends)[0].split()
            declared[name] = (folder or name, depends)
        for folder, depends in re.findall(
                r"stepcast_program\(\s*(\S+)\s+\S+\s+(?:COLD\s+)?DEPENDS([^)]*)\)", text):
            declared[folder] = (folder, depends.split())
        return declared
