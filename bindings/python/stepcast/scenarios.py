# SPDX-License-Identifier: Apache-2.0
"""Scenarios as they are handed over: dicts, files, keyword arguments."""

import difflib
import functools
import json
import os
from typing import Any, Dict, Mapping, Optional, Union

from . import _core
from .errors import Error, Problem

#: A scenario: its keys as a dict, or the path of a file that holds it as JSON.
ScenarioLike = Union[Mapping[str, Any], str, "os.PathLike[str]"]

# Keys of a scenario that are set whole.
_WHOLE = ("model", "cluster", "profile", "training", "layout", "run", "plan")


@functools.lru_cache(maxsize=None)
def shipped_data() -> _core.Data:
    return _core.Data.shipped()


def data_at(folder: "Union[str, os.PathLike[str], None]") -> _core.Data:
    return shipped_data() if folder is None else _core.Data.open(os.fspath(folder))


@functools.lru_cache(maxsize=None)
def paths_of_words() -> Dict[str, str]:
    """The path of each key of training and layout by its last part ("tp"), and by its flag."""
    out: Dict[str, str] = {}
    rows = json.loads(shipped_data().list("keys", ""))
    for row in rows:  # a flag has its word, whatever key ends with it
        out.setdefault(row["key"].rpartition(".")[2], row["key"])
    for row in rows:
        if row.get("flag"):
            out[row["flag"].strip("-").replace("-", "_")] = row["key"]
    return out


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    """The value with paths as text, and numbers of other libraries as numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and not isinstance(value, (bool, int, float, str)):
        return value.item()  # of an array library
    return value


def _unknown(word: str) -> Error:
    words = [*_WHOLE, *paths_of_words()]
    near = difflib.get_close_matches(word, words, n=1)
    hint = f"did you mean '{near[0]}'?" if near else "stepcast.keys() lists those there are"
    return Error([Problem("unknown_key", "is no key of a scenario", path=word, hint=hint)])


def scenario_of(stated: Optional[ScenarioLike], changes: Optional[Mapping[str, Any]],
                keys: Mapping[str, Any], data: _core.Data,
                name: str = "scenario") -> _core.Scenario:
    """`stated` with `keys` by their words, then with `changes` by dotted path. Raises Error."""
    whole = {key: _plain(value) for key, value in keys.items() if key in _WHOLE}
    words = {key: value for key, value in keys.items() if key not in _WHOLE}
    if isinstance(stated, (str, os.PathLike)):
        name = os.fspath(stated)
        stated = json.loads(_core.Scenario.load(data, name).json())
    if stated is not None and not isinstance(stated, Mapping):
        raise TypeError(f"a scenario is a dict or the path of a file, not {type(stated).__name__}")
    document = {"stepcast": 1, **_plain(stated or {}), **whole}
    out = _core.Scenario.parse(data, json.dumps(document), name)
    for word, value in words.items():
        if word not in paths_of_words():
            raise _unknown(word)
        out = out.with_value(paths_of_words()[word], _text_of(value))
    for path, value in (changes or {}).items():
        out = out.with_value(path, _text_of(value))
    return out
