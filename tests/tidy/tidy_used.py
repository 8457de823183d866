# SPDX-License-Identifier: Apache-2.0
"""Some program must use what a header declares: a function, a header or a field that only tests
use, or nobody, is dead weight. A free function that only its own .cpp calls belongs there, unless a
test calls it.

The check reads text, not meaning: a function counts as used as soon as any source outside tests/
calls something of its name. So it misses some that are dead, and rarely blames one that lives. It
knows functions at namespace scope and public member functions; constructors and operators are
beyond it, and an overriding function is called by the name in its base. tidy_fields.py looks for
the fields.
"""

import collections
import re

from tidy_fields import unread_fields
from tidy_tree import HEADERS, PUBLIC

# One line each, "FILE NAME: reason" ("STRUCT::FIELD" for the name of a field), or "FILE: reason" of
# a whole header.
EXCEPTIONS = "tests/tidy/used_by_tests_alone.txt"
DECLARING = ("src/", "sim/", "calibrate/")
TESTS = "tests/"

NOT_CODE = re.compile(r'R"\((?:.|\n)*?\)"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"'
                      r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
TOKEN = re.compile(r"\n|[A-Za-z_]\w*|::|->|==|<=|>=|!=|&&|[^\s\w]")
NAME = re.compile(r"[a-z]\w*")
NOT_DECLARED = {"using", "typedef", "friend", "override", "operator", "~", "static_assert"}
NOT_A_NAME = {"if", "for", "while", "switch", "return", "sizeof", "alignof", "decltype",
              "noexcept", "alignas", "explicit", "requires", "operator", "defined"}
ACCESS = {"public", "private", "protected"}
# A function that is handed on stands behind one of these.
HANDED_ON = {"::", "&", "(", ",", "{", "=", "return", "?", ":"}
TYPES = {"class", "struct", "union", "enum"}


def code_of(text):
    """C++ without comments and the contents of quotes; line numbers stay."""
    def blank(match):
        found = match.group(0)
        quote = "" if found.startswith("/") else '""'
        return quote + "\n" * found.count("\n")
    return NOT_CODE.sub(blank, text)


class Source:
    """The functions that a source declares, and the names that it uses."""

    def __init__(self, text):
        self.includes = re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE)
        # (name, line, stands alone: without a body or a class) of functions that others can call.
        self.declared = []
        self.defined = set()  # names of all functions with a body here
        self.used = set()     # names that something other than their own function calls
        code = code_of(text)
        for directive in DIRECTIVE.findall(code):  # a macro uses what it calls
            self._tokens, self._lines = self._read(directive)
            self._note_uses(0, len(self._tokens), "")
        self._tokens, self._lines = self._read(
            DIRECTIVE.sub(lambda found: "\n" * found.group(0).count("\n"), code))
        self._at = 0
        self._inside("", shown=True)

    @staticmethod
    def _read(code):
        tokens, lines, line = [], [], 1
        for token in TOKEN.findall(code):
            if token == "\n":
                line += 1
            else:
                tokens.append(token)
                lines.append(line)
        return tokens, lines

    def _inside(self, class_name, shown):
        """A file, namespace or class, up to its closing brace."""
        start = self._at
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token == "}":
                return
            if token == "{":
                start = self._opened(start, class_name, shown)
            elif token == ";":
                self._statement(start, class_name, shown)
                start = self._at
            elif token == ":" and self._at - start == 2 and self._tokens[start] in ACCESS:
                shown = self._tokens[start] == "public"
                start = self._at

    def _opened(self, start, class_name, shown):
        """A brace after the tokens from `start`. Returns where the next statement starts."""
        words = [self._tokens[at] for at in self._outside_angles(start, self._at - 1)]
        if "namespace" in words:
            self._inside("", shown and len(words) > words.index("namespace") + 1)
        elif TYPES & set(words) and "(" not in words and "=" not in words:
            if "enum" in words:
                self._body("")
            else:
                kind = next(at for at, word in enumerate(words) if word in TYPES)
                names = [word for word in words[kind + 1:] if word[0].isalpha()]
                self._inside(names[0] if names else "", shown and "class" not in words[:kind + 1])
            if self._tokens[self._at:self._at + 1] == [";"]:
                self._at += 1
        elif "(" in words:
            name = self._statement(start, class_name, shown, opens=True)
            self._body(name)
        else:  # an initializer: the statement goes on behind it
            self._body("")
            return start
        return self._at

    def _body(self, function):
        """Passes over a body, and notes what it uses but its own function."""
        depth = 1
        start = self._at
        while depth and self._at < len(self._tokens):
            depth += {"{": 1, "}": -1}.get(self._tokens[self._at], 0)
            self._at += 1
        self._note_uses(start, self._at, function)

    def _outside_angles(self, start, end):
        """Places of the tokens that are no arguments of templates."""
        depth = 0
        for at in range(start, end):
            if self._tokens[at] == "<":
                depth += 1
            elif self._tokens[at] == ">" and depth:
                depth -= 1
            elif not depth:
                yield at

    def _statement(self, start, class_name, shown, opens=False):
        """A declaration up to its semicolon or body. Returns the name of its function, if it is
        one."""
        places = list(self._outside_angles(start, self._at - 1))
        words = [self._tokens[at] for at in places]
        name = ""
        if "(" in words and "=" not in words[:words.index("(")] and words.index("(") > 0:
            before = words.index("(") - 1
            name = words[before]
            own = NAME.fullmatch(name) and name not in NOT_A_NAME and name != class_name
            if own and shown and before > 0 and words[before - 1] != "::" and not (
                    NOT_DECLARED & set(words)):
                self.declared.append(
                    (name, self._lines[places[before]], not (opens or class_name)))
            if opens:
                self.defined.add(name)
        self._note_uses(start, self._at - 1, name)
        return name

    def _note_uses(self, start, end, function):
        """Names that are called, or handed on by their name: f(x), f<T>(x), &f, each(xs, f)."""
        for at in range(start, end):
            token = self._tokens[at]
            if token == function or not NAME.fullmatch(token):
                continue
            after = self._tokens[at + 1] if at + 1 < len(self._tokens) else ""
            before = self._tokens[at - 1] if at else ""
            if after in ("(", "<") or before in HANDED_ON:
                self.used.add(token)


def stem(name):
    return name.rsplit(".", 1)[0]


def is_header(name):
    return (name.endswith(tuple(HEADERS)) and name.startswith(DECLARING)
            and not name.startswith(PUBLIC))


def read_exceptions(tree):
    """Returns what is allowed, with the line that allows it."""
    file = tree.root / EXCEPTIONS
    lines = file.read_text().split("\n") if file.exists() else []
    return {line.partition(": ")[0].strip(): number for number, line in enumerate(lines, 1)
            if line and not line.startswith("#")}


def unused_headers(sources):
    """(file, line, what, why)"""
    included_by = collections.defaultdict(set)
    for name, source in sources.items():
        for target in source.includes:
            included_by[target].add(name)
    for name in sources:
        if not is_header(name):
            continue
        users = included_by[name] | included_by[name.removeprefix("src/")]
        if not any(not user.startswith(TESTS) and stem(user) != stem(name) for user in users):
            yield name, 1, name, "no program includes this header"


def unused_functions(sources):
    """(file, line, what, why)"""
    users, definers = collections.defaultdict(set), collections.defaultdict(set)
    for name, source in sources.items():
        for used in source.used:
            users[used].add(name)
        for defined in source.defined:
            definers[defined].add(name)
    for name, source in sources.items():
        if not is_header(name):
            continue
        own = {stem(name) + ending for ending in (".cpp", ".cu")} & sources.keys()
        for function, line, alone in dict.fromkeys(source.declared):
            tested = any(user.startswith(TESTS) for user in users[function])
            programs = {user for user in users[function] if not user.startswith(TESTS)}
            if not programs:
                who = "only tests call" if tested else "nobody calls"
                yield name, line, f"{name} {function}", f"{who} {function}()"
            elif alone and not tested and programs == definers[function] == own:
                yield (name, line, f"{name} {function}",
                       f"only its own .cpp calls {function}(): declare it there")


def check(tree):
    texts = {tree.name(file): file.read_text() for file in tree.sources()}
    sources = {name: Source(text) for name, text in texts.items()}
    codes = {name: code_of(text) for name, text in texts.items()}
    exceptions = read_exceptions(tree)
    fields = unread_fields(codes, is_header, lambda name: name.startswith(TESTS))
    found = {*unused_headers(sources), *unused_functions(sources), *fields}
    for name, line, what, why in found:
        if what not in exceptions:
            yield f"{name}:{line}: {why}"
    for what in exceptions.keys() - {what for _, _, what, _ in found}:
        yield f"{EXCEPTIONS}:{exceptions[what]}: {what} needs no exception"
