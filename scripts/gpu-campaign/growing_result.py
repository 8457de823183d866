# SPDX-License-Identifier: Apache-2.0
"""A result in JSON that is on the disk after each measurement, since any of them may be the last:
a kernel can hang, break the GPU for this process, or outlast the time that there is."""

import json


class GpuBroken(Exception):
    """The GPU runs nothing any more in this process."""


class GrowingResult:
    """Measurements by key, of one machine.

    A key that was begun and has no measurement ended its process. It is tried once more, after all
    others, and then left out.
    """

    def __init__(self, output, machine):
        self.output, self.machine = output, machine
        before = self.earlier()
        self.measured = before.get("measured", {})
        self.ended = before.get("ended", {})  # how often a key ended its process
        if before.get("trying"):
            self.ended[before["trying"]] = self.ended.get(before["trying"], 0) + 1
        self.trying = None
        self.rest_of = dict  # what else the file has, from what is measured by now

    def earlier(self):
        """Reads what an earlier call on the same machine has left."""
        try:
            before = json.loads(self.output.read_text())
        except (AttributeError, OSError, ValueError):  # no output, no file, no JSON
            return {}
        same = all(before.get(key) == value for key, value in self.machine.items())
        return before if same else {}

    def in_order(self, keys):
        """Sorts the keys that are still to be measured."""
        left = [key for key in keys if key not in self.measured and self.ended.get(key, 0) < 2]
        return sorted(left, key=lambda key: self.ended.get(key, 0))

    def measure(self, torch, key, function):
        """function() returns a dictionary; what it raises becomes {"error"}. Raises GpuBroken."""
        self.trying = key
        self.write()
        try:
            found = function()
        except Exception as error:  # out of memory and whatever a compiler may raise
            found = {"error": first_line(error)}
            check_gpu(torch, key, found["error"])
        self.trying = None
        self.measured[key] = found
        self.write()
        return found

    def write(self):
        if self.output is None:
            return
        result = {**self.machine, **self.rest_of(), "measured": self.measured, "ended": self.ended}
        if self.trying:
            result["trying"] = self.trying
        waiting = self.output.with_name(self.output.name + ".part")
        waiting.write_text(json.dumps(result, indent=1) + "\n")
        waiting.replace(self.output)


def check_gpu(torch, key, reason):
    """An illegal access or a failed launch leaves every later call to fail."""
    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except Exception as error:
        raise GpuBroken(f"{key}: {reason}; the GPU runs nothing any more in this process: "
                        f"{first_line(error)}") from error


def first_line(error):
    return f"{type(error).__name__}: " + (str(error).strip().splitlines() or [""])[0]
