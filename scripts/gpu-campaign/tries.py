# SPDX-License-Identifier: Apache-2.0
"""Remembers a campaign's steps from slice to slice, and says which of them is next.

A step that hung, crashed, or took the machine with it comes after all others of its slice, gets up
to twice its limit, and is given up after the second time. One that the end of a slice cut off is no
fault of its own: it begins again where that much time is left.
"""

import json

FAULTS = ("hung", "crashed", "killed")
MOST_FAULTS = 2
MOST_RUNS = 6  # with those that were cut off


def read(file, otherwise):
    return json.loads(file.read_text()) if file.exists() else otherwise


class Tries:
    def __init__(self, state):
        self.done_file, self.runs_file = state / "done.json", state / "tries.json"
        self.done = read(self.done_file, {})  # of steps with a result: code, seconds, kind, profile
        self.runs = read(self.runs_file, {})  # of all steps: how each of their runs ended
        for runs in self.runs.values():
            if runs[-1]["end"] == "running":  # the slice ended without notice
                runs[-1]["end"] = "killed"

    def write(self):
        self.done_file.write_text(json.dumps(self.done, indent=1) + "\n")
        self.runs_file.write_text(json.dumps(self.runs, indent=1) + "\n")

    # A run of a step

    def begin(self, step, limit_s):
        self.runs.setdefault(step.name, []).append({"end": "running", "limit_s": round(limit_s)})
        self.write()

    def end(self, step, how, seconds, why):
        self.runs[step.name][-1].update({"end": how, "seconds": seconds, "why": why})
        self.write()

    def finish(self, step, code, seconds, profile):
        self.done[step.name] = {"code": code, "seconds": seconds, "kind": step.kind}
        if step.profile:
            self.done[step.name]["profile"] = profile
        self.end(step, "finished", seconds, "")

    # The conclusions

    def faults(self, name):
        return [run for run in self.runs.get(name, []) if run["end"] in FAULTS]

    def given_up(self, name):
        runs = [run for run in self.runs.get(name, []) if run["end"] != "finished"]
        return len(self.faults(name)) >= MOST_FAULTS or len(runs) >= MOST_RUNS

    def limit_s(self, step):
        return step.limit_s * (2 if self.faults(step.name) else 1)

    def needs_s(self, step, most_s):
        """It is begun with so much time left; `most_s` is that of a whole slice."""
        alike = [one["seconds"] for one in self.done.values()
                 if step.kind and one["kind"] == step.kind]
        needs = max([step.needs_s, *(min(seconds, step.limit_s) for seconds in alike)])
        last = self.runs.get(step.name, [{}])[-1]
        if last.get("end") in ("hung", "cut off") and not step.goes_on:
            needs = max(needs, last["seconds"] + 1)  # so much was not enough
        return min(needs, most_s)

    def to_do(self, steps, has_profile):
        """Lists the steps that are still to be run, in the order in which they come.

        What was forecast with a shipped profile is forecast again once there is a measured one.
        """
        order = {}
        for index, step in enumerate(steps):
            done = self.done.get(step.name)
            again = done is not None and has_profile and done.get("profile", "own") != "own"
            needless = step.needless_after in self.done
            if (done is None or again) and not needless and not self.given_up(step.name):
                order[step] = (step.rank, len(self.faults(step.name)) + again, index)
        return sorted(order, key=order.get)

    def words(self, name):
        """How its runs that brought no result ended."""
        return ", then ".join(f"{run['end']}{run.get('why', '') and ': ' + run['why']}"
                              for run in self.runs.get(name, []) if run["end"] != "finished")
