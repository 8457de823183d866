#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times in PyTorch, on the same card, the kernels that a calibration measured.

    scripts/gpu-campaign/pytorch.py PROFILE.json [-o OUT.json] [--most 60]

Of each product and attention of the profile's samples: PyTorch's time over the profile's, which is
above 1 where the program's kernel is the faster one. A profile that the program has not measured
itself, as those that are shipped, has published times instead. Attention is timed by cuDNN and by
flash attention, and the faster one counts. Also the bandwidth of a copy and of fused AdamW. Kernels
are launched as CUDA graphs, on noise in copies that take turns and together are twice the
second-level cache, as in the calibration; the median of 20 launches counts. Between launches runs
the calibration's load of products and sums, so that both are timed at the clock of a step.

OUT is written after each kernel, and a later call goes on from it.
"""

import argparse
import itertools
import json
import pathlib
import statistics
import sys

import attention_backends
from growing_result import GpuBroken, GrowingResult

ACCELERATORS = pathlib.Path(__file__).resolve().parents[2] / "topologies/accelerators"
MOST_COPIES = 1024
SAMPLES = 20
SAMPLE_S = 2e-3
MOST_CALLS = 1024
BETWEEN_S = 10e-3  # of the load between two launches
PRODUCTS_OF_LOAD = 0.8
OWN_KERNEL = "stepcast"  # of attention, in profiles that the program has measured
STREAMS = "streams"


class Timer:
    def __init__(self, torch):
        self.torch = torch
        self.cache_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        self.load = None
        self.load = self.load_graph()

    def load_graph(self):
        """Products of 4096 x 4096, and sums of 2^26 elements for a fifth of the time."""
        torch = self.torch
        a, b, c = (noise(torch, 4096, 4096) for _ in range(3))
        x, y, z = (noise(torch, 1 << 26) for _ in range(3))
        product = self.seconds_of(lambda _: torch.mm(a, b, out=c), 1)
        total = self.seconds_of(lambda _: torch.add(x, y, out=z), 1)
        sums = max(1, round((1 - PRODUCTS_OF_LOAD) * BETWEEN_S / total))
        products = max(1, round(PRODUCTS_OF_LOAD * BETWEEN_S / product / sums))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(sums):
                for _ in range(products):
                    torch.mm(a, b, out=c)
                torch.add(x, y, out=z)
        self.kept = (a, b, c, x, y, z)  # which the graph's kernels work on
        return graph

    def copies(self, bytes_of_call):
        """Counts the copies of the operands: as many as the calibration has."""
        return max(1, min(MOST_COPIES, 2 * self.cache_bytes // max(1, bytes_of_call) + 1))

    def seconds_of(self, call, copies):
        """The time of one call; `call` gets the number of the copy to work on."""
        torch = self.torch
        for copy in range(copies):
            call(copy)
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call(0)
        end.record()
        end.synchronize()
        once = max(1e-6, start.elapsed_time(end) / 1e3)
        calls = max(1, min(MOST_CALLS, round(SAMPLE_S / once)))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(calls):
                call(i % copies)
        times = []
        for _ in range(SAMPLES + 2):
            if self.load is not None:
                self.load.replay()
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 1e3 / calls)
        return statistics.median(times[2:])


def noise(torch, *shape, dtype=None):
    return torch.randn(*shape, device="cuda", dtype=dtype or torch.bfloat16)


def time_gemm(timer, row):
    torch = timer.torch
    m, n, k = (row[key] for key in ("m", "n", "k"))
    copies = timer.copies(2 * (m * k + k * n + m * n))
    # Linear layers hold them so: x W^T, dy W, dy^T x.
    left = [noise(torch, *((k, m) if row["role"] == "weight_gradient" else (m, k)))
            for _ in range(copies)]
    right = [noise(torch, *((n, k) if row["role"] == "forward" else (k, n)))
             for _ in range(copies)]
    out = [noise(torch, m, n) for _ in range(copies)]

    def call(i):
        a = left[i].t() if row["role"] == "weight_gradient" else left[i]
        b = right[i].t() if row["role"] == "forward" else right[i]
        torch.mm(a, b, out=out[i])

    return {"pytorch_s": timer.seconds_of(call, copies)}


def attention_call(timer, row):
    """(call, copies) of one pass, under the backend that is chosen now."""
    torch = timer.torch
    attend = torch.nn.functional.scaled_dot_product_attention
    b, h, kv, s, d = (row[key] for key in ("batch", "heads", "kv_heads", "sequence", "head_dim"))
    options = {"is_causal": bool(row["causal"])}
    if h != kv:
        options["enable_gqa"] = True
    backward = row["pass"] == "backward"
    queries, keys = b * h * s * d, b * kv * s * d
    copies = timer.copies(2 * ((4 if backward else 2) * queries + (4 if backward else 2) * keys))

    def heads(count):  # as a layer has them: heads inside rows of tokens
        return noise(torch, b, s, count, d).transpose(1, 2)

    inputs = [(heads(h), heads(kv), heads(kv)) for _ in range(copies)]
    if not backward:
        def forward(i):
            with torch.no_grad():
                attend(*inputs[i], **options)
        return forward, copies
    for tensors in inputs:
        for tensor in tensors:
            tensor.requires_grad_(True)
    gradients = [heads(h) for _ in range(copies)]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        outs = [attend(*tensors, **options) for tensors in inputs]
    stream.synchronize()
    return (lambda i: torch.autograd.grad(outs[i], inputs[i], gradients[i], retain_graph=True),
            copies)


def time_attention(timer, row):
    found, reasons = {}, []
    for name in attention_backends.NAMES:
        try:
            with attention_backends.only(timer.torch, name):
                found[name] = timer.seconds_of(*attention_call(timer, row))
        except RuntimeError as error:  # the backend has no such kernel, or no memory
            reasons.append(f"{name}: {str(error).splitlines()[0]}")
            timer.torch.cuda.empty_cache()
    if not found:
        raise RuntimeError("; ".join(reasons))
    return {"pytorch_s": min(found.values()), "by_backend_s": found}


def rows_of(curve):
    columns = curve["samples"]["columns"]
    return [dict(zip(columns, row)) for row in curve["samples"]["rows"]]


def flops_of(kind, row):
    if kind == "gemm":
        return 2 * row["batch"] * row["m"] * row["n"] * row["k"]
    forward = 4 * row["batch"] * row["heads"] * row["sequence"] ** 2 * row["head_dim"]
    return forward * (0.5 if row["causal"] else 1) * (2.5 if row["pass"] == "backward" else 1)


def bf16_peak(device):
    """Dense FLOP/s that the fractions of a profile are of."""
    accelerator = json.loads((ACCELERATORS / f"{device}.json").read_text())
    number, unit = accelerator["dense_peak"]["bf16"].split()
    return float(number) * {"TFLOP/s": 1e12, "PFLOP/s": 1e15}[unit]


def measured_here(profile):
    """Whether the program has measured it with its own kernels."""
    return any(curve.get("kernel") == OWN_KERNEL for curve in profile["curves"])


def chosen_rows(profile, most):
    """(kind, row) of at most so many rows of each kind, products and attention in turns."""
    own = measured_here(profile)
    found = {"gemm": [], "attention": []}
    for curve in profile["curves"]:
        kind = curve["operation"]
        fits = kind == "gemm" and curve.get("precision") == "bf16"
        fits = fits or (kind == "attention" and (not own or curve["kernel"] == OWN_KERNEL))
        if fits and "samples" in curve:
            found[kind] += [row for row in rows_of(curve) if kind != "gemm" or row["batch"] == 1]
    thinned = [[(kind, row) for row in rows[::-(-len(rows) // most) or 1]]
               for kind, rows in found.items()]
    return [one for both in itertools.zip_longest(*thinned) for one in both if one is not None]


def key_of(kind, row):
    return " ".join([kind, *(str(value) for name, value in row.items() if name != "median")])


def kernels_of(rows, peak, measured):
    out = []
    for kind, row in rows:
        theirs = measured.get(key_of(kind, row), {})
        if "pytorch_s" not in theirs:
            continue
        ours = flops_of(kind, row) / (peak * row["median"])
        out.append({"kind": kind, **row, "ours_s": ours, **theirs,
                    "ratio": theirs["pytorch_s"] / ours})
    return out


def compare(timer, profile, result, most):
    """Measures what `result` lacks."""
    rows = chosen_rows(profile, most)
    peak = bf16_peak(profile["device"])
    by_key = {key_of(kind, row): (kind, row) for kind, row in rows}
    measures = {"gemm": time_gemm, "attention": time_attention}

    result.rest_of = lambda: {
        "profile": {"name": profile["name"], "own": measured_here(profile)},
        "streams": result.measured.get(STREAMS, {}),
        "kernels": kernels_of(rows, peak, result.measured)}
    for key in result.in_order([STREAMS, *by_key]):
        if key == STREAMS:
            found = result.measure(timer.torch, key, lambda: streams(timer))
        else:
            kind, row = by_key[key]
            found = result.measure(timer.torch, key, lambda: measures[kind](timer, row))
        if "error" in found:
            print(f"left out {key}: {found['error']}", file=sys.stderr)
    result.write()


def streams(timer):
    """Arrays that are several times the cache need no copies."""
    torch, n = timer.torch, 1 << 28
    a, b = noise(torch, n), noise(torch, n)
    copy = timer.seconds_of(lambda i: b.copy_(a), 1)
    weight = torch.nn.Parameter(noise(torch, n // 4, dtype=torch.float32))
    weight.grad = noise(torch, n // 4, dtype=torch.float32)
    adamw = torch.optim.AdamW([weight], fused=True, capturable=True)
    step = timer.seconds_of(lambda i: adamw.step(), 1)
    return {"copy_bytes_per_s": 2 * a.nbytes / copy, "adamw_bytes_per_s": 7 * weight.nbytes / step}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=60, help="of each kind of kernel")
    options = parser.parse_args()
    try:
        profile = json.loads(options.profile.read_text())
    except OSError as error:
        sys.exit(f"pytorch.py: {options.profile}: {error.strerror}")
    try:
        import torch
    except ImportError:
        sys.exit("pytorch.py: PyTorch is not installed here")
    if not torch.cuda.is_available():
        sys.exit("pytorch.py: PyTorch sees no GPU")
    result = GrowingResult(options.output, {"torch": torch.__version__,
                                            "device": torch.cuda.get_device_name()})
    try:
        compare(Timer(torch), profile, result, options.most)
    except GpuBroken as reason:
        sys.exit(f"pytorch.py: {reason}")
    tell(result.rest_of())


def tell(rest):
    for kind in ("gemm", "attention"):
        ratios = sorted(row["ratio"] for row in rest["kernels"] if row["kind"] == kind)
        if ratios:
            print(f"{kind}: {len(ratios)} shapes, PyTorch's time over ours: median "
                  f"{statistics.median(ratios):.3f}, least {ratios[0]:.3f}")
    if "copy_bytes_per_s" in rest["streams"]:
        print("copy {copy_bytes_per_s:.4g} B/s, fused AdamW {adamw_bytes_per_s:.4g} B/s".format(
            **rest["streams"]))


if __name__ == "__main__":
    main()
