#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what TCP flows reach in a lab. Runs inside one:

    scripts/lab.sh TOPOLOGY.json -- tests/lab/goodput.py SECONDS FROM-TO...
    scripts/lab.sh TOPOLOGY.json -- tests/lab/goodput.py round-trip A-B

The first prints for each flow between two ranks its payload in bytes/s over the time in which all
of them run; the second the median, least and 90th percentile round trip of 8 bytes in seconds.
"""

import bisect
import os
import shlex
import socket
import statistics
import subprocess
import sys
import time

CHUNK = b"x" * 65536
SETTLE = 0.2  # seconds: windows open, buckets empty
FIRST_PORT = 20000


def on_host(rank, *arguments):
    command = [sys.executable, "-B", os.path.abspath(__file__), *map(str, arguments)]
    words = [os.environ["STEPCAST_LAB_ENTER"], f"rank{rank}", shlex.join(command)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def receive(port):
    """Prints when each part arrived: all namespaces share one clock."""
    with socket.create_server(("", port)) as server:
        print("ready", flush=True)
        connection, _ = server.accept()
        total, next_sample, samples = 0, 0.0, []
        while data := connection.recv(1 << 16):
            total += len(data)
            now = time.monotonic()
            if now >= next_sample:
                samples.append((now, total))
                next_sample = now + 0.005
    print(" ".join(f"{now!r}:{total}" for now, total in samples))


def send(host, port, seconds):
    with socket.create_connection((host, port)) as connection:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            connection.sendall(CHUNK)


def bytes_at(samples, when):
    times = [now for now, _ in samples]
    return samples[max(0, bisect.bisect_right(times, when) - 1)]


def flows(seconds, pairs):
    receivers = [on_host(b, "receive", FIRST_PORT + i) for i, (_, b) in enumerate(pairs)]
    for receiver in receivers:
        receiver.stdout.readline()
    senders = [on_host(a, "send", f"rank{b}", FIRST_PORT + i, seconds)
               for i, (a, b) in enumerate(pairs)]
    series = []
    for receiver in receivers:
        words = receiver.communicate()[0].split()
        series.append([(float(now), int(total)) for now, total in
                       (word.split(":") for word in words)])
    for process in senders:
        process.communicate()
    start = max(samples[0][0] for samples in series) + SETTLE
    end = min(samples[-1][0] for samples in series)
    for (a, b), samples in zip(pairs, series):
        t0, first = bytes_at(samples, start)
        t1, last = bytes_at(samples, end)
        print(f"{a}-{b} {(last - first) / (t1 - t0):.0f}")


def echo(port):
    with socket.create_server(("", port)) as server:
        print("ready", flush=True)
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := connection.recv(8):
            connection.sendall(data)


def ask(host, port):
    times = []
    with socket.create_connection((host, port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(500):
            start = time.monotonic()
            connection.sendall(b"12345678")
            connection.recv(8)
            times.append(time.monotonic() - start)
    times.sort()
    print(f"{statistics.median(times):.7f} {times[0]:.7f} {times[450]:.7f}")


def round_trip(a, b):
    server = on_host(b, "echo", FIRST_PORT)
    server.stdout.readline()
    print(on_host(a, "ask", f"rank{b}", FIRST_PORT).communicate()[0], end="")
    server.communicate()


def main(arguments):
    what, *rest = arguments
    if what == "receive":
        receive(int(rest[0]))
    elif what == "send":
        send(rest[0], int(rest[1]), float(rest[2]))
    elif what == "echo":
        echo(int(rest[0]))
    elif what == "ask":
        ask(rest[0], int(rest[1]))
    elif what == "round-trip":
        round_trip(*map(int, rest[0].split("-")))
    else:
        flows(float(what), [tuple(map(int, pair.split("-"))) for pair in rest])


if __name__ == "__main__":
    main(sys.argv[1:])
