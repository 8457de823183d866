# SPDX-License-Identifier: Apache-2.0
"""Fields of the structs of headers that no program reads: they are filled in vain.

A field counts as read where something outside tests/ names it behind a dot, an arrow or `::` (a
pointer to a member) and does not just assign to it; where a structured binding of its name takes
it; where its own header names it again, as members of the struct do; and where the struct is
compared as a whole. Like the check of functions this reads text: fields of one name stand for each
other, so it misses some, and rarely blames one that lives.
"""

import re

STRUCT = re.compile(r"\bstruct\s+(?:\w+\s+)?(\w+)\s*(?::[^;{()]*)?\{")
NOT_A_FIELD = re.compile(r"^(?:using|typedef|friend|static|struct|class|enum|template|union)\b")
WHOLE = re.compile(r"operator\s*(?:==|<=>)[^;{]*=\s*default")
READ = re.compile(r"(?:\.|->|::)\s*([a-z]\w*)\b(?!\s*=[^=])(?!\s*\()")
BINDING = re.compile(r"\bauto\s*[&*]*\s*\[([\w\s,]+)\]")
BRACKETS = {"{": 1, "(": 1, "[": 1, "<": 1, "}": -1, ")": -1, "]": -1, ">": -1}


def body_from(code, start):
    """Returns the code between the brace before `start` and the one that closes it."""
    depth, at = 1, start
    while depth and at < len(code):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        at += 1
    return code[start:at - 1]


def split(text, separator):
    """(offset, part) of the parts between separators outside all brackets."""
    depth, begin, parts = 0, 0, []
    for at, char in enumerate(text):
        is_arrow = char == ">" and text[at - 1:at] == "-"
        depth += 0 if is_arrow else BRACKETS.get(char, 0)
        if char == separator and depth <= 0:
            parts.append((begin, text[begin:at]))
            begin, depth = at + 1, 0
        elif char == "}" and depth <= 0 and separator == ";":
            depth = 0
    parts.append((begin, text[begin:]))
    return parts


def without_functions(body):
    """The body without those of its functions and inner types; their lines stay."""
    out, depth, in_function = [], 0, False
    for at, char in enumerate(body):
        if char == "{" and depth == 0:
            before = body[:at].rstrip()
            in_function = before.endswith((")", "const", "override", "noexcept")) or bool(
                re.search(r"\b(?:struct|class|enum|union)\b[^;{}]*$", before))
        if char == "{":
            depth += 1
        inside = in_function and depth > 0
        out.append(char if not inside or char == "\n" else " ")
        if char == "}":
            depth -= 1
            if in_function and depth == 0:
                out[-1] = ";"
                in_function = False
    return "".join(out)


def fields(code):
    """(struct, field, line) of each field of a struct that code may read by its name."""
    for struct in STRUCT.finditer(code):
        body = body_from(code, struct.end())
        if WHOLE.search(body):
            continue
        for offset, statement in split(without_functions(body), ";"):
            shape = re.sub(r"<[^;]*?>(?=[\s&*>:,])", "", statement)
            if NOT_A_FIELD.match(statement.strip()) or "(" in shape.split("=")[0].split("{")[0]:
                continue
            for place, (_, part) in enumerate(split(statement, ",")):
                declared = re.split(r"[={\[]", part)[0].split()
                if declared and (place > 0 or len(declared) > 1):
                    name = declared[-1].lstrip("*&")
                    if re.fullmatch(r"[a-z]\w*[a-z0-9]|[a-z]", name):
                        skipped = len(statement) - len(statement.lstrip())
                        line = code.count("\n", 0, struct.end() + offset + skipped) + 1
                        yield struct.group(1), name, line


def unread_fields(codes, is_header, is_test):
    """(file, line, what, why) of `codes`: the code of each file, by its name."""
    readers = {}
    for file, code in codes.items():
        for name in READ.findall(code):
            readers.setdefault(name, set()).add(file)
        for names in BINDING.findall(code):
            for name in names.replace(",", " ").split():
                readers.setdefault(name, set()).add(file)
    for file, code in codes.items():
        if not is_header(file):
            continue
        for struct, name, line in fields(code):
            programs = {reader for reader in readers.get(name, ()) if not is_test(reader)}
            again = len(re.findall(rf"(?<![\w.])(?:{name})\b(?!\s*\()", code)) > 1
            if not programs and not again:
                who = "only tests read" if readers.get(name) else "nobody reads"
                yield file, line, f"{file} {struct}::{name}", f"{who} the field {struct}::{name}"
