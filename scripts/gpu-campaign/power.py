#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what kernels draw, and at which clock the power limit lets them run.

    scripts/gpu-campaign/power.py [-o OUT.json] [--seconds 1.2]

Runs each kind of kernel alone, and products in turns with sums that move memory, for so long
without rest, and writes what the second half shows: seconds per call, mean power (by the energy
counter), and the SM clock. Before that, after a rest, come some milliseconds at the highest clock.
The power of each kind by clock follows from these, and so does the clock at which a step of all of
them meets the limit.

OUT is written after each, and a later call goes on from it.
"""

import argparse
import pathlib
import statistics
import sys
import time

import attention_backends
from growing_result import GpuBroken, GrowingResult
from pytorch import noise

REST_S = 0.3
BURST_S = 8e-3
LAUNCH_S = 20e-3
SIZES = ((8192, 8192, 8192), (4096, 4096, 4096), (8192, 2048, 2048), (8192, 16384, 2048))
SHARES = (0.2, 0.4, 0.6, 0.8)  # of a mixture's time for sums


class Nvml:
    def __init__(self):
        import pynvml
        self.nvml = pynvml
        pynvml.nvmlInit()
        self.device = pynvml.nvmlDeviceGetHandleByIndex(0)

    def energy_j(self):
        return self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.device) / 1e3

    def clock_mhz(self):
        return self.nvml.nvmlDeviceGetClockInfo(self.device, self.nvml.NVML_CLOCK_SM)


class Runner:
    def __init__(self, torch, nvml, seconds):
        self.torch, self.nvml, self.seconds = torch, nvml, seconds

    def events(self):
        return [self.torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def timed(self, work):
        start, end = self.events()
        start.record()
        work()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3

    def graph_of(self, call, seconds):
        """(graph, calls in it): about so long."""
        call()
        self.torch.cuda.synchronize()
        once = max(1e-6, self.timed(call))
        calls = max(1, round(seconds / once))
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            for _ in range(calls):
                call()
        return graph, calls

    def measure(self, call):
        burst, burst_calls = self.graph_of(call, BURST_S)
        graph, calls = self.graph_of(call, LAUNCH_S)
        self.torch.cuda.synchronize()
        time.sleep(REST_S)
        burst_s = self.timed(burst.replay) / burst_calls
        end = time.monotonic() + self.seconds / 2
        while time.monotonic() < end:
            self.timed(graph.replay)
        times, clocks = [], []
        begin, joules = time.monotonic(), self.nvml.energy_j()
        while time.monotonic() < begin + self.seconds / 2:
            start, stop = self.events()
            start.record()
            graph.replay()
            stop.record()
            clocks.append(self.nvml.clock_mhz())
            stop.synchronize()
            times.append(start.elapsed_time(stop) / 1e3 / calls)
        power = (self.nvml.energy_j() - joules) / (time.monotonic() - begin)
        return {"burst_s": burst_s, "call_s": statistics.mean(times), "power_w": power,
                "sm_clock_mhz": statistics.mean(clocks)}


def product(torch, m, n, k):
    a, b, c = noise(torch, m, k), noise(torch, n, k), noise(torch, m, n)
    return lambda: torch.mm(a, b.t(), out=c)


def fp8_product(torch, m, n, k):
    a, b = (noise(torch, *shape).to(torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                    use_fast_accum=True)


def sums(torch):
    x, y, z = (noise(torch, 1 << 27) for _ in range(3))
    return lambda: torch.add(x, y, out=z)


def attention(torch, backward, head_dim):
    attend = torch.nn.functional.scaled_dot_product_attention
    q, k, v, dy = (noise(torch, 2, 4096, 2048 // head_dim, head_dim).transpose(1, 2)
                   for _ in range(4))
    if not backward:
        def forward():
            with torch.no_grad():
                attend(q, k, v, is_causal=True)
        return forward
    inputs = [tensor.requires_grad_(True) for tensor in (q, k, v)]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        out = attend(*inputs, is_causal=True)
    stream.synchronize()
    return lambda: torch.autograd.grad(out, inputs, dy, retain_graph=True)


def in_turns(torch, runner, make, share):
    """Calls of `make()` and sums, which take the share of the time at the highest clock."""
    one, other = make(), sums(torch)
    for call in (one, other):
        call()
    torch.cuda.synchronize()
    times = share / (1 - share) * runner.timed(one) / runner.timed(other)
    calls = (1, max(1, round(times))) if times >= 1 else (max(1, round(1 / times)), 1)

    def both():
        for _ in range(calls[0]):
            one()
        for _ in range(calls[1]):
            other()
    return both, {"products": calls[0], "sums": calls[1]}


def cases(torch, runner):
    """Functions by name, each of which measures one kind."""
    out = {}
    for size in SIZES:
        for name, make in (("bf16", product), ("fp8", fp8_product)):
            out[f"gemm {name} {'x'.join(map(str, size))}"] = (
                lambda make=make, size=size: runner.measure(make(torch, *size)))
    for head_dim in (64, 128):
        for backward in (False, True):
            def of_attention(backward=backward, head_dim=head_dim):
                with attention_backends.only(torch, "cudnn"):
                    return runner.measure(attention(torch, backward, head_dim))
            out[f"attention {'backward' if backward else 'forward'} {head_dim}"] = of_attention
    out["sums"] = lambda: runner.measure(sums(torch))
    for name, make in (("bf16", product), ("fp8", fp8_product)):
        for share in SHARES:
            def mixed(make=make, share=share):
                call, counts = in_turns(torch, runner, lambda: make(torch, 8192, 8192, 2048), share)
                return {**runner.measure(call), **counts}
            out[f"gemm {name} 8192x8192x2048 with sums {share}"] = mixed
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=1.2)
    options = parser.parse_args()
    try:
        import torch
        nvml = Nvml()
    except ImportError as error:
        sys.exit(f"power.py: {error}")
    if not torch.cuda.is_available():
        sys.exit("power.py: PyTorch sees no GPU")
    result = GrowingResult(options.output, {"torch": torch.__version__,
                                            "device": torch.cuda.get_device_name()})
    runner = Runner(torch, nvml, options.seconds)
    by_name = cases(torch, runner)
    result.rest_of = lambda: {}
    try:
        for name in result.in_order(list(by_name)):
            found = result.measure(torch, name, by_name[name])
            torch.cuda.empty_cache()
            print(name, found, flush=True)
    except GpuBroken as reason:
        sys.exit(f"power.py: {reason}")
    result.write()


if __name__ == "__main__":
    main()
