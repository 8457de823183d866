#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever a name holds, an independent reader of each format reads the name: 600 seeded strings of
hostile pieces through each escaper."""

import csv
import html.parser
import io
import json
import os
import re
import shutil
import subprocess
import tomllib
import unittest
import urllib.parse
import xml.etree.ElementTree

import yaml

from hostile import byte_strings, read_back, replaced, shown, unfit_for_a_terminal

STRINGS = list(byte_strings(35, 600))


def escaped(form):
    """The escaped form of each string, as bytes."""
    done = subprocess.run([os.environ["ESCAPE_EACH"], form], capture_output=True, check=True,
                          input=b"".join(text + b"\0" for text in STRINGS))
    out = done.stdout.split(b"\0")[:-1]
    assert len(out) == len(STRINGS) > 600, len(out)
    return out


def read_together(form, before, after, reader):
    """Lets a program read one document that holds every escaped string."""
    parts = [before + text + after for text in escaped(form)]
    return subprocess.run(reader, input=b"".join(parts), capture_output=True, check=True).stdout


def blanks_collapsed(text):
    return re.sub(r"[ \t\n]+", " ", text).strip()


class Tables(html.parser.HTMLParser):
    """The text of each list item, and every element that was not asked for."""

    def __init__(self, inside):
        super().__init__(convert_charrefs=True)
        self.inside, self.texts, self.others = inside, [], []

    def handle_starttag(self, tag, attrs):
        if tag == self.inside:
            self.texts.append("")
        else:
            self.others.append(tag)

    def handle_data(self, data):
        if self.texts:
            self.texts[-1] += data


class RoundTrips(unittest.TestCase):
    maxDiff = 2000

    def compare(self, expected, found):
        expected, found = list(expected), list(found)
        self.assertEqual(len(expected), len(found))
        for source, want, have in zip(STRINGS, expected, found):
            self.assertEqual(want, have, source)

    def fits_a_terminal(self, form, allowed="\n"):
        for source, text in zip(STRINGS, escaped(form)):
            self.assertEqual([], unfit_for_a_terminal(text, allowed), source)

    def test_no_format_lets_a_control_character_through(self):
        for form in ("markdown", "yaml", "shell", "comment", "json",
                     "json_in_script", "xml_attribute"):
            self.fits_a_terminal(form)
        for form in ("csv", "dot", "github", "toml", "xml", "graphml"):  # these hold tabs
            self.fits_a_terminal(form, "\n\t")
        self.fits_a_terminal("terminal", "")

    def test_terminal_lines_show_what_they_replace(self):
        texts = [text.decode() for text in escaped("terminal")]
        for source, text in zip(STRINGS, texts):
            plain = shown(source)
            if plain.replace("\n", "") == plain and "\ufffd" not in plain and "\t" not in plain:
                self.assertEqual(plain, text.replace("\\::", "::").replace("##\\[", "##["))
            self.assertFalse(text.lstrip(" ").startswith("::"), text)
            self.assertNotIn("##[", text)
        pairs = dict(zip(STRINGS, texts))
        self.assertEqual("\\x1b[31m", pairs[b"\x1b[31m"])
        self.assertEqual("\\u202e", pairs["\u202e".encode()])
        self.assertEqual("\\n", pairs[b"\n"])
        self.assertEqual("\\U000e0041", pairs["\U000e0041".encode()])

    def test_csv(self):
        # Python's reader, with a neighbour on both sides.
        document = b"".join(b"before," + text + b",after\n" for text in escaped("csv")).decode()
        rows = list(csv.reader(io.StringIO(document, newline=""), strict=True))
        self.assertTrue(all(len(row) == 3 for row in rows))
        number = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?( ?%)?")

        def expected(source):
            text = shown(source)
            runs = text[:1] in ("=", "+", "-", "@", "\t") and len(text) > 1
            return "'" + text if runs and not number.fullmatch(text) else text

        self.compare(map(expected, STRINGS), [row[1] for row in rows])
        self.assertTrue(any(row[1].startswith("'=") for row in rows))

    def test_csv_keeps_numbers(self):
        texts = ["-3", "+0.5", "-1e-05", "-8.3 %", "-.5", "-"]
        done = subprocess.run([os.environ["ESCAPE_EACH"], "csv"], capture_output=True, check=True,
                              text=True, input="".join(text + "\0" for text in texts))
        self.assertEqual(texts, done.stdout.split("\0")[:-1])

    def test_xml_content_and_attributes(self):
        for form, before, after in (("xml", b"<a>", b"</a>"), ("xml_attribute", b'<a b="', b'"/>')):
            document = b"".join(before + text + after for text in escaped(form))
            root = xml.etree.ElementTree.fromstring(b"<all>" + document + b"</all>")
            self.assertTrue(all(len(node) == 0 for node in root))
            found = [(node.text or "") if form == "xml" else node.get("b") for node in root]
            self.compare(map(shown, STRINGS), found)

    def test_html(self):
        reader = Tables("td")
        reader.feed("".join(f"<td>{text.decode()}</td>" for text in escaped("xml")))
        reader.close()
        self.assertEqual([], reader.others)
        self.compare(map(shown, STRINGS), reader.texts)

    def test_json(self):
        for form in ("json", "json_in_script"):
            texts = escaped(form)
            self.compare(map(replaced, STRINGS), (read_back(json.loads(text)) for text in texts))
        for text in escaped("json_in_script"):
            self.assertNotRegex(text, rb"[<>&]")

    def test_yaml_stays_text(self):
        found = [list(yaml.safe_load_all(text.decode()))[1] for text in escaped("yaml")]
        images = [document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
                  ["containers"][0]["image"] for document in found]
        self.compare(map(replaced, STRINGS), map(read_back, images))

    def test_toml(self):
        found = [tomllib.loads(text.decode())["key"] for text in escaped("toml")]
        self.compare(map(replaced, STRINGS), map(read_back, found))

    def test_shell_words_are_the_very_bytes(self):
        script = b"".join(b"printf '%s\\0' " + text + b"\n" for text in escaped("shell"))
        out = subprocess.run([shutil.which("bash"), "-c", script], capture_output=True, check=True,
                             env={"LC_ALL": "C", "PATH": ""}).stdout
        self.compare(STRINGS, out.split(b"\0")[:-1])

    def test_a_comment_ends_where_its_line_ends(self):
        for text in escaped("comment"):
            self.assertEqual(1, len(("# " + text.decode()).splitlines()))

    def test_github_reads_one_command(self):
        pattern = re.compile(r"::notice title=([^:,\n]*)::([^\n]*)\n")
        for source, text in zip(STRINGS, escaped("github")):
            found = pattern.fullmatch(text.decode())
            self.assertTrue(found, text)
            for value in found.groups():
                self.assertEqual(shown(source), urllib.parse.unquote(value))

    def test_markdown_is_plain_words_for_githubs_own_reader(self):
        out = read_together("markdown", b"- ", b"\n", ["cmark-gfm", "--unsafe", "-e", "table", "-e",
                                                       "strikethrough", "-e", "autolink"])
        # An item for each, and no element beside the list and the links that addresses become.
        reader = Tables("li")
        reader.feed(out.decode())
        self.assertEqual(set(), set(reader.others) - {"ul", "p", "a"})
        self.compare((blanks_collapsed(shown(text)) for text in STRINGS),
                     (blanks_collapsed(text) for text in reader.texts))

    def test_markdown_code_blocks_hold_every_line(self):
        out = read_together("markdown_code", b"", b"\n", ["cmark-gfm", "--unsafe"])
        reader = Tables("code")
        reader.feed(out.decode())
        self.assertEqual({"pre"}, set(reader.others))
        self.assertEqual(len(STRINGS), len(reader.texts))

    def test_dot_labels(self):
        # dot's own parser; its JSON prints the labels as they are in the graph.
        document = b"digraph {" + b"".join(
            b'n%d [label="%s"];\n' % (at, text.replace(b'"', b'\\"'))
            for at, text in enumerate(escaped("dot"))) + b"}"
        done = subprocess.run(["dot", "-Tdot_json"], input=document, capture_output=True,
                              check=True)
        nodes = json.loads(done.stdout)["objects"]
        labels = {int(node["name"][1:]): node["label"] for node in nodes}
        plain = {at: re.sub(r"\\(.)", lambda c: "\n" if c[1] == "n" else c[1], label)
                 for at, label in labels.items()}
        self.compare(map(shown, STRINGS), (plain[at] for at in range(len(STRINGS))))


if __name__ == "__main__":
    unittest.main()
