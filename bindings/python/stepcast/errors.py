# SPDX-License-Identifier: Apache-2.0
"""Errors name the key, its value and a remedy."""

import dataclasses
import json
import re
from typing import Any, Iterable, List, Mapping, Tuple

_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclasses.dataclass(frozen=True)
class Problem:
    """One thing that is wrong: `path` is the key ("layout.tp"), `value` what stands there (None
    where nothing does), `hint` says what is accepted, and `file` names the file, where there is
    one. `code` is one of io, syntax, format, unknown_key, missing_key, wrong_type, bad_value,
    bad_unit, not_found, illegal, not_supported, too_much."""

    code: str
    message: str
    file: str = ""
    path: str = ""
    value: Any = None
    hint: str = ""

    def __str__(self) -> str:
        place = "".join(f"{part}: " for part in (self.file, self.path) if part)
        return place + self.message + (f" ({self.hint})" if self.hint else "")


class Error(ValueError):
    """Everything that is wrong, as a list of `problems`; `path`, `value` and `hint` are those of
    the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, str]], stated: str) -> "Error":
        return cls(problems_of(rows, stated))

    def __reduce__(self) -> Any:  # so that another process can hand it on
        return type(self), (self.problems,)

    @property
    def path(self) -> str:
        return self.problems[0].path if self.problems else ""

    @property
    def value(self) -> Any:
        return self.problems[0].value if self.problems else None

    @property
    def hint(self) -> str:
        return self.problems[0].hint if self.problems else ""


def problems_of(rows: Iterable[Mapping[str, str]], stated: str) -> List[Problem]:
    """Rows of the library with the values that their paths lead to in the JSON `stated`."""
    document = json.loads(stated) if stated else None
    return [Problem(value=_at(document, row["path"]), **row) for row in rows]


def _at(document: Any, path: str) -> Any:
    if not path:
        return None
    for key, index in _PART.findall(path):
        if index:
            if not isinstance(document, list) or int(index) >= len(document):
                return None
            document = document[int(index)]
        else:
            if not isinstance(document, dict) or key not in document:
                return None
            document = document[key]
    return document
