# SPDX-License-Identifier: Apache-2.0
"""Data files: strict JSON, no key twice, of a known format, every figure with its source."""

import json



def no_key_twice(pairs):
    keys = [key for key, _ in pairs]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        raise ValueError(f"key given twice: {', '.join(sorted(twice))}")
    return dict(pairs)


def no_constant(name):
    raise ValueError(f"{name} is not JSON")


def check(tree):
    for file in tree.with_suffix(".json"):
        name = tree.name(file)
        try:
            value = json.loads(file.read_text(), object_pairs_hook=no_key_twice,
                               parse_constant=no_constant)
        except ValueError as error:
            yield f"{name}:1: {error}"
            continue
        if name.startswith("suites/"):
            yield from check_suite(name, value)


def check_suite(name, suite):
    if suite.get("stepcast_suite") != 1:
        yield f"{name}:1: no \"stepcast_suite\": 1"
    seen = set()
    for case in suite.get("cases", []):
        case_id = case.get("id", "?")
        if case_id in seen:
            yield f"{name}:1: case {case_id} stands there twice"
        seen.add(case_id)
        for key in ("id", "source", "scenario", "measured"):
            if not case.get(key):
                yield f"{name}:1: case {case_id} has no {key}"
