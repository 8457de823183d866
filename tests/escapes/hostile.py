# SPDX-License-Identifier: Apache-2.0
"""Strings that break formats, and what no terminal may see; written from the standards and not
from the escapers."""

import random
import re

# Marks of every format, words that are no text in one of them, and characters that draw, move,
# ring, hide, turn or end something.
PIECES = ["<img src=x onerror=alert(1)>", "</script>", "<!--", "-->", "]]>", "&amp;", "&#65;", "&",
          "## a", "# a", "- a", "* a", "1. a", "> a", "---", "===", "```", "`a`", "**a**", "_a_",
          "~~a~~", "[a](http://b)", "![a](b)", "|", "$a$", "=1+1", "+1", "-1", "@a", "\t=1", "'",
          '"', '""', "\\", "\\n", "$(id)", "${A}", "$A", "`id`", ";", "!", "*", "?", "~", "{a,b}",
          "true", "null", "123", "1e3", "0x1f", ".5", "2001-01-01", "yes", "no", "~", "- ", ": ",
          " #", "::error::a", "##[error]a", "%0A", "%", ",", ":", "a", "b c", "é", "ß", "日本",
          "\U0001f600", " ", "  ", "    a", "\n", "\r", "\r\n", "\t", "\x00"[:0], "\x01", "\x07",
          "\x08", "\x0b", "\x0c", "\x1b[31m", "\x1b]0;a\x07", "\x7f", "\x80", "\x85", "\x9b31m",
          "\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069", "\u2028", "\u2029",
          "\ufeff", "\ufffe", "\uffff", "\ufdd0", "\U0001fffe", "\U000e0041", "\ufffd"]
BAD_BYTES = [b"\xff", b"\xc0\x80", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80"]


def strings(seed, count):
    """Seeded: every piece alone, then words of several pieces."""
    draw = random.Random(seed)
    yield from PIECES
    for _ in range(count):
        yield "".join(draw.choices(PIECES, k=draw.randint(1, 6)))


def byte_strings(seed, count):
    """Draws the strings as bytes, every fourth of them no UTF-8."""
    draw = random.Random(seed)
    for index, text in enumerate(strings(seed, count)):
        data = text.encode()
        if index % 4 == 0:
            place = draw.randint(0, len(data))
            data = data[:place] + draw.choice(BAD_BYTES) + data[place:]
        yield data


def is_hidden(point):
    return (point in (0x61C, 0x200E, 0x200F, 0xFEFF) or 0x202A <= point <= 0x202E
            or 0x2066 <= point <= 0x2069 or 0xFFF9 <= point <= 0xFFFB
            or 0xE0000 <= point <= 0xE007F)


def is_control(point):
    return point < 0x20 or 0x7F <= point < 0xA0 or point in (0x2028, 0x2029)


def is_no_character(point):
    return point & 0xFFFE == 0xFFFE or 0xFDD0 <= point <= 0xFDEF


def shown(data):
    """Shows the bytes in a format without escapes: one U+FFFD for each thing it cannot hold."""
    text = data.decode("utf-8", "surrogateescape") if isinstance(data, bytes) else data
    out = ""
    for character in text:
        point = ord(character)
        stays = character in "\n\t" or not (is_hidden(point) or is_control(point)
                                            or is_no_character(point) or 0xD800 <= point <= 0xDFFF)
        out += character if stays else "\ufffd"
    return out


def read_back(text):
    """How many marks a broken byte leaves, and whether code points that are no characters stay, is
    the affair of the library."""
    marked = "".join("\ufffd" if is_no_character(ord(c)) else c for c in text)
    return re.sub("\ufffd+", "\ufffd", marked)


def replaced(data):
    """Keeps what JSON, YAML and TOML hold: everything that is UTF-8."""
    return read_back(data.decode("utf-8", "surrogateescape").translate(
        {point: "\ufffd" for point in range(0xDC80, 0xDD00)}))


def unfit_for_a_terminal(data, allowed="\n"):
    """The characters of an output that a terminal must not see; bytes that are not UTF-8 too."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return [f"not UTF-8: {error}"]
    return [f"{character!r} in {text[max(0, at - 30):at + 30]!r}"
            for at, character in enumerate(text)
            if character not in allowed and (is_control(ord(character))
                                             or is_hidden(ord(character))
                                             or is_no_character(ord(character)))]
