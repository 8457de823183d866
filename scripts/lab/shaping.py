# SPDX-License-Identifier: Apache-2.0
"""How a link gets its rate: token buckets, queues and TCP windows. docs/lab.md has measurements.

All sizes are bytes, rates bytes/s, times seconds.
"""

MTU = 9000  # of 1500, headers would take 4 % of the rate instead of 0.7 %
HEADER = 14  # Ethernet: the bucket counts it

# A full bucket empties at the machine's own speed after a pause, so a message of this size looks
# free: the bucket must be small. But it must outlast the delay between the moment at which a
# packet may go and the moment at which the kernel sends it, for what overflows meanwhile is lost.
# With a quarter of a millisecond four flows of 1 Gb/s reached 0.80 to 0.93 of it on two cores with
# fifteen processes waiting for them, with half of one 0.98. Two packets are the least that works;
# tc rounds down.
BURST_TIME = 0.5e-3
MIN_BURST = 5 * (MTU + HEADER) // 2

# TCP hands down packets of up to 64 KiB. One that exceeds the bucket is cut into segments by tbf,
# at a cost that halves the rate of a busy machine: hosts send none that their bucket cannot take.
LARGEST_PACKET = 65536
HEADERS_OF_SEGMENTS = 1024

# A flow never has more in flight than its window, and every queue holds the windows of all pairs
# of hosts whose path crosses it: nothing is dropped, and no retransmission timer (200 ms) hides in
# a measurement. Equal windows are what gives flows that share a link equal parts of it. The window
# exceeds rate x round trip, for which queues and a busy machine take WINDOW_TIME beside the stated
# latencies. The receiver's TCP can keep only to these sizes, a shift of the largest that 16 bits
# hold; it would round up others. Twice as long, and the sender's own limit on what it queues
# (10 ms of its present rate, with the highest setting) binds first: equal flows then drift apart.
LARGEST_UNSCALED_WINDOW = 65535
WINDOW_TIME = 4e-3
MAX_QUEUE = 256 * 1024 * 1024

# Between process and window: what arrives or leaves while the process waits for a core, 8 and 32 ms
# of 1 Gb/s. A larger send buffer would help no more, but Open MPI's answers wait behind what it
# holds: with 4 MiB two ranks that exchange 4 MB reach 0.55 of 1 Gb/s, with 1 MiB 0.8.
SEND_BUFFER = 1024 * 1024
RECEIVE_BUFFER = 4 * 1024 * 1024

# Below this a stated latency is what a packet's way through the kernel takes anyway.
MIN_DELAY = 100e-6


def burst(rate):
    return max(MIN_BURST, round(rate * BURST_TIME))


def largest_packet(rate):
    return min(LARGEST_PACKET, burst(rate) - HEADERS_OF_SEGMENTS)


def delay(edge):
    """Returns the delay that netem adds to the link."""
    return edge.latency if edge.latency >= MIN_DELAY else 0.0


def window(plan, source, target):
    """Returns the bytes that a flow from host `source` to `target` has in flight at most."""
    there = plan.path(source.vertex, target.vertex)
    back = plan.path(target.vertex, source.vertex)
    round_trip = WINDOW_TIME + sum(edge.latency for edge in there + back)
    scale = 0
    while LARGEST_UNSCALED_WINDOW << scale < min(edge.rate for edge in there) * round_trip:
        scale += 1
    return LARGEST_UNSCALED_WINDOW << scale


def queues(plan):
    """(from, to) -> the limit of its queue: the windows of all pairs of hosts whose path crosses
    this direction of the link, a quarter more for headers, and what the bucket takes at once."""
    windows = {(a, b): 0 for a, edges in plan.edges.items() for b in edges}
    for source in plan.hosts:
        for target in plan.hosts:
            if source is not target:
                for step in plan.steps(source.vertex, target.vertex):
                    windows[step] += window(plan, source, target)
    return {(a, b): min(MAX_QUEUE, total * 5 // 4) + burst(plan.edges[a][b].rate)
            for (a, b), total in windows.items()}


def tc_commands(plan, vertex, limits, netem):
    """Lines for `tc -batch` in the namespace of `vertex`. With netem, it delays and the tbf under
    it shapes what comes out."""
    for neighbour, port in plan.ports(vertex).items():
        edge = plan.edges[vertex][neighbour]
        limit = limits[vertex, neighbour]
        tbf = f"tbf rate {round(edge.rate * 8)}bit burst {burst(edge.rate)} limit {limit}"
        if netem and delay(edge):
            packets = limit // 64  # netem counts packets, and the smallest are this long
            yield (f"qdisc add dev {port} root handle 1: netem limit {packets} "
                   f"delay {round(delay(edge) * 1e6)}us")
            yield f"qdisc add dev {port} parent 1:1 handle 10: {tbf}"
        else:
            yield f"qdisc add dev {port} root handle 1: {tbf}"


def sysctls():
    """Settings of each host's namespace, as paths under /proc/sys/net."""
    return {
        "ipv4/tcp_congestion_control": "reno",  # the window opens to its limit, delays or not
        "ipv4/tcp_wmem": f"4096 {SEND_BUFFER} {SEND_BUFFER}",
        "ipv4/tcp_rmem": f"4096 {RECEIVE_BUFFER} {RECEIVE_BUFFER}",
        "ipv4/tcp_pacing_ca_ratio": "1000",  # percent: what TCP hands down is 10 ms of its rate
        "ipv4/tcp_pacing_ss_ratio": "1000",
        "ipv4/tcp_slow_start_after_idle": "0",  # a step pauses between its collectives
        "ipv4/tcp_no_metrics_save": "1",
        "ipv6/conf/all/disable_ipv6": "1",  # no chatter of its own
        "ipv6/conf/default/disable_ipv6": "1",
    }
