# SPDX-License-Identifier: Apache-2.0
"""Documents point to what is there: files, headings, scripts, presets and commands."""

import json
import os
import re
import urllib.parse

LINK = re.compile(r"\[[^\]]*\]\(([^)]+)\)")
FENCE = re.compile(r"^(```|~~~)")


def prose(text):
    """Numbered lines outside fenced code, without inline code."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if FENCE.match(line.strip()):
            fenced = not fenced
        elif not fenced:
            yield number, re.sub(r"`[^`]*`", "", line)


def anchors(text):
    """The anchors that GitHub gives the headings."""
    found = set()
    fenced = False
    for line in text.split("\n"):
        if FENCE.match(line.strip()):
            fenced = not fenced
        heading = re.match(r"#+\s+(.*)", line)
        if heading and not fenced:
            words = re.sub(r"[^\w\- ]", "", heading.group(1).replace("`", "").lower())
            found.add(words.strip().replace(" ", "-"))
    return found


def check_links(tree):
    for file in tree.with_suffix(".md"):
        for number, line in prose(file.read_text()):
            for target in LINK.findall(line):
                if re.match(r"[a-z]+:", target):
                    continue
                if re.search(r"\s", target):
                    yield f"{tree.name(file)}:{number}: the link '{target}' has blanks"
                    continue
                path, _, anchor = target.partition("#")
                linked = (file.parent / urllib.parse.unquote(path)) if path else file
                where = f"{tree.name(file)}:{number}"
                if not linked.exists():
                    yield f"{where}: {target} does not exist"
                elif anchor and linked.suffix == ".md" and anchor not in anchors(
                        linked.read_text()):
                    yield f"{where}: {target}: no such heading"


def shell_lines(text):
    """Numbered lines inside blocks marked sh or console."""
    language = None
    for number, line in enumerate(text.split("\n"), 1):
        fence = re.match(r"```(\w*)", line)
        if fence:
            language = fence.group(1) if language is None else None
        elif language in ("sh", "console"):
            yield number, line


def check_commands(tree):
    presets_file = tree.root / "CMakePresets.json"
    presets = set()
    if presets_file.exists():
        presets = {preset["name"]
                   for preset in json.loads(presets_file.read_text())["configurePresets"]}
    for file in tree.with_suffix(".md"):
        for number, line in shell_lines(file.read_text()):
            where = f"{tree.name(file)}:{number}"
            for script in re.findall(r"(?:^|[\s/])(scripts/[\w.-]+|\.ci/\w+)", line):
                if not os.access(tree.root / script, os.X_OK):
                    yield f"{where}: {script} is no program"
            for preset in re.findall(r"--preset[ =](\w+)", line):
                if preset not in presets:
                    yield f"{where}: no preset {preset}"
            for verb in re.findall(r"^(?:\$ )?(?:build/\w+/)?stepcast (\w+)", line):
                if not (tree.root / "src" / "cli" / f"{verb}.cpp").exists():
                    yield f"{where}: stepcast has no {verb}"
