# SPDX-License-Identifier: Apache-2.0
"""Sends hostile calls to the agents' server, which runs under limits of time and memory.

    hostile_calls.py --build build/release            1,000 calls; prints the worst of each kind
    hostile_calls.py ... --calls 150 --most-seconds 30   what CI runs: it measures no speed

Calls ask for steps of millions of micro-batches, buckets and ranks, for searches without an end,
for files that are pipes, devices, links or lie outside the server's folder, and for what is no
call. Each must be answered in time, within the memory, and alike whether a file outside is there
or not; afterwards the server must still forecast as at first.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import select
import subprocess
import sys
import tempfile
import time

TIME_LIMIT_S = 2
MEMORY_LIMIT_GB = 2
SECRET = "word-that-only-the-outside-knows"
PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}


class Server:
    """One process, asked for one line at a time."""

    def __init__(self, program, root):
        command = [program, "serve", "--mcp", "--root", root, "--threads", "2"]
        command += ["--time-limit", str(TIME_LIMIT_S), "--memory-limit", f"{MEMORY_LIMIT_GB}GB"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.rest = b""

    def ask(self, line, patience_s):
        """The answer, and how long it took; None where none came."""
        begin = time.monotonic()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        while b"\n" not in self.rest:
            left = begin + patience_s - time.monotonic()
            ready, _, _ = select.select([self.process.stdout], [], [], max(left, 0))
            piece = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not piece:
                return None, time.monotonic() - begin
            self.rest += piece
        answer, self.rest = self.rest.split(b"\n", 1)
        return answer.decode(), time.monotonic() - begin

    def peak_gb(self):
        status = pathlib.Path("/proc", str(self.process.pid), "status").read_text()
        return next(int(line.split()[1]) / 1e6 for line in status.splitlines() if "VmHWM" in line)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def call(name, **arguments):
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def scenario(**changes):
    out = {"model": "llama-3.1-8b", "cluster": "dgx-h100x2",
           "training": {"global_batch": 128, "sequence_length": 8192}}
    for key, value in changes.items():
        out[key] = {**out[key], **value} if isinstance(value, dict) and key == "training" else value
    return out


def model_of(draw):
    """A model that somebody makes up, of legal sizes that nobody has."""
    heads = draw.choice([8, 64, 128])
    return {"layers": draw.choice([2, 128, 1000, 4096]), "hidden": heads * 128, "heads": heads,
            "vocab": draw.choice([1024, 2 ** 20]), "max_positions": 8192, "mlp": "gelu",
            "norm": "layernorm", "position": "learned", "biases": True, "dropout": 0}


def large(draw):
    """A step of so much of something that its lists fill the memory."""
    gpus = draw.choice([8, 64, 1024, 16384, 131072])
    pp = draw.choice([1, 2, 8, 16, 64])
    layout = {"tp": draw.choice([1, 2, 8]), "pp": pp, "micro_batch": 1,
              "zero": draw.choice([0, 1, 2, 3]),
              "schedule": draw.choice(["1f1b", "gpipe", "interleaved", "zb-v", "dualpipe", "auto"]),
              "virtual_stages": draw.choice([1, 2, 4])}
    training = {"global_batch": 2 ** draw.randrange(7, 24),
                "sequence_length": draw.choice([64, 1024, 8192]),
                "framework": draw.choice(["megatron", "fsdp", "deepspeed", "native"])}
    if draw.random() < 0.4:
        training["bucket_elements"] = draw.choice([1, 10, 1000])
    if draw.random() < 0.2:
        training.update(document_length=draw.choice([8, 100]), document_deviation=50)
    if draw.random() < 0.5:
        del layout["virtual_stages"], layout["schedule"]
    out = scenario(training=training, layout=layout,
                   cluster={"base": "dgx-h100", "gpus": gpus})
    if draw.random() < 0.5:
        out["model"] = model_of(draw)
    return out


def predicts(draw, _):
    return call("predict", scenario=large(draw))


def searches(draw, _):
    open_one = large(draw)
    del open_one["layout"]
    tool = draw.choice(["plan", "why_not"])
    more = {"layout": {"tp": 4}} if tool == "why_not" else {"objective": "cost"}
    return call(tool, scenario=open_one, places=10, **more)


def compares(draw, _):
    return call("compare", scenarios=[{"name": f"s{i}", "scenario": large(draw)}
                                      for i in range(draw.choice([2, 16]))])


def checks(draw, _):
    return call("check", suite=draw.choice(["llm-foundry", "megatron-2021", "none", "../suites"]))


def devices(draw, folder):
    inside = [f"{folder}/root/{name}" for name in ("pipe", "link", "", "zero", "huge.json")]
    file = draw.choice(["/dev/zero", "/dev/random", "/proc/kmsg", "/proc/self/environ",
                        "/dev/stdin", *inside])
    return call("predict", scenario=scenario(**{draw.choice(["model", "cluster"]): file}))


def listings(draw, _):
    topic = draw.choice(["figures", "figure", "recipes", "models", "keys", "", "x" * 5000, "\0", 7])
    return call("list", topic=topic, filter=draw.choice(["", "a", "\0", "é" * 999]))


def broken(draw, _):
    """Lines that are no call, or calls of wrong types."""
    whole = json.dumps(predicts(draw, None)).encode()
    wrong = [None, [], 1e308, "x" * 99999, {"a": {"b": {}}}, [[[]]], -1, 2 ** 63]
    return draw.choice([
        whole[:draw.randrange(1, len(whole))], whole + b"\0" + whole, b"[" * 99999, b"\xff\xfe",
        b"[" + b"0," * 499999 + b"0]", b"x" * (2 << 20), whole.replace(b"1", b"1e999"),
        call(draw.choice(["predict", "plan", "compare", "check", "list"]),
             **{draw.choice(["scenario", "scenarios", "topic", "set"]): draw.choice(wrong)}),
        call("predict", scenario=scenario(), set={"layout.tp": draw.choice(wrong)}),
        call("predict", scenario=scenario(), what_if=["nic=+1e308%"] * 1000)])


KINDS = [predicts, searches, compares, checks, devices, listings, broken]


def outside_files(folder):
    """Pairs of names outside: one that exists and one that does not."""
    out = pathlib.Path(folder, "outside")
    return [(str(out / "there.json"), str(out / "gone1.json")),
            (f"{folder}/root/../outside/there.json", f"{folder}/root/../outside/gone1.json"),
            (f"{folder}/root/to-there.json", f"{folder}/root/to-gone1.json"),
            (f"{folder}/root/folder/there.json", f"{folder}/root/folder/gone1.json"),
            ("/etc/passwd", "/etc/gone12"), ("/root", "/gone")]


def tells_outside(server, folder, tell):
    """How many names show by their answers whether a file outside exists, or what is in it."""
    told = 0
    for there, gone in outside_files(folder):
        for make in (lambda name: call("predict", scenario=scenario(model=name)),
                     lambda name: call("predict", scenario=scenario(cluster=name)),
                     lambda name: call("predict", scenario=scenario(cluster={"base": name})),
                     lambda name: call("predict", scenario=scenario(
                         layout={"schedule_file": name})),
                     lambda name: call("check", suite=name),
                     lambda name: call("plan", scenario=scenario(cluster={
                         "base": "dgx-h100x2", "accelerator": {"profile": name}}))):
            answers = []
            for name in (there, gone):
                answer, _ = server.ask(json.dumps(make(name)).encode(), 30)
                answers.append((answer or "none").replace(json.dumps(name)[1:-1], "NAME"))
            if answers[0] != answers[1] or SECRET in answers[0]:
                tell(f"told of {there}: {answers[0][:300]}\n  and of {gone}: {answers[1][:300]}")
                told += 1
    return told


def make_folder(folder):
    root, outside = pathlib.Path(folder, "root"), pathlib.Path(folder, "outside")
    root.mkdir()
    outside.mkdir()
    (outside / "there.json").write_text(f'{{"{SECRET}": 1}}')
    for name in ("there", "gone1"):
        (root / f"to-{name}.json").symlink_to(outside / f"{name}.json")
    (root / "folder").symlink_to(outside)
    (root / "link").symlink_to("/dev/zero")
    (root / "zero").symlink_to("/proc/kmsg")
    (root / "huge.json").write_bytes(b"[" + b"0," * (30 << 20) + b"0]")
    os.mkfifo(root / "pipe")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-seconds", type=float, default=2.5)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    worst = collections.defaultdict(float)
    answered = collections.Counter()
    wrong = []

    def tell(text):
        wrong.append(text)
        print(text, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder)
        server = Server(str(pathlib.Path(given.build, "stepcast")), f"{folder}/root")
        usual = json.dumps(call("predict", scenario=scenario())).encode()
        first, _ = server.ask(usual, 60)
        for i in range(given.calls):
            kind = KINDS[i % len(KINDS)]
            made = kind(draw, folder)
            line = made if isinstance(made, bytes) else json.dumps(made).encode()
            before = server.peak_gb()
            answer, took_s = server.ask(line, given.most_seconds + 60)
            if answer is None:
                tell(f"no answer to call {i} ({kind.__name__}): {line[:2000]}")
                break
            name = kind.__name__
            answered[name] += 1
            worst[name] = max(worst[name], took_s)
            peak = server.peak_gb()
            if took_s > given.most_seconds:
                tell(f"call {i} ({name}) took {took_s:.1f} s: {line[:1500]}")
            if peak > MEMORY_LIMIT_GB >= before:
                tell(f"call {i} ({name}) brought the server to {peak:.2f} GB: {line[:1500]}")
            if SECRET in answer or "internal error" in answer:
                tell(f"call {i} ({name}) was answered with {answer[:500]}\n  {line[:1500]}")
        else:
            told = tells_outside(server, folder, tell)
            if server.ask(usual, 60)[0] != first:
                tell("the server forecasts otherwise than at first")
            if server.ask(json.dumps(PING).encode(), 10)[0] is None:
                tell("the server answers no ping")
            print(f"names that tell of the outside: {told}; peak {server.peak_gb():.2f} GB")
            if server.end() != 0:
                tell("the server did not end well")
    for name, count in answered.items():
        print(f"{name:10} {count:5} calls, the longest {worst[name]:.2f} s")
    print(f"{sum(answered.values())} calls answered, {len(wrong)} findings")
    return 1 if wrong or sum(answered.values()) < given.calls else 0


if __name__ == "__main__":
    sys.exit(main())
