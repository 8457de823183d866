#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thins measured tables of kernels to the surfaces that calibrate/published holds.

    scripts/thin-kernel-tables.py FOLDER [--out calibrate/published]

FOLDER holds tables of ai-dynamo/aiconfigurator as one JSON file a device and kind: `source`,
`columns` and `rows`, times in microseconds. The rows that are kept lie on a coarse grid of sizes,
so every other row has a size that no kept row has. An even selection of those others is written
beside the kept ones as `held_out`: the fit never sees it, and its errors are stated.
The same tables give the same bytes.
"""

import argparse
import json
import pathlib
import statistics

DEVICES = {
    "a100_sxm": "a100-sxm4-80g",
    "h100_sxm": "h100-sxm5-80g",
    "h200_sxm": "h200-sxm5-141g",
    "b200_sxm": "b200-sxm6-180g",
    "b300_sxm": "b300-sxm-288g",
    "gb200": "gb200-186g",
    "gb300": "gb300-288g",
    "l40s": "l40s-48g",
}

# Products: the sizes whose every combination is kept.
PRODUCT_SIZES = {
    "m": {512, 1024, 2048, 4096, 16384},
    "n": {256, 512, 1024, 1536, 3072, 5120, 8192, 16384, 65536},
    "k": {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536},
}
# Engines run products in bf16 with the same library, and differ by what they fill operands with:
# zeros draw less power. In fp8 they differ by how they cast, and the quickest casts in one kernel.
# Products in fp4 have operands that were cast before, and engines differ by up to 1.8 times: some
# have kernels that nobody tuned, and the quickest choose among all, those of the library that
# trains among them.
PRODUCTS = {"bfloat16": ("bf16", "median_us", 240), "fp8": ("fp8", "least_us", 160),
            "nvfp4": ("fp4", "least_us", 160)}


# In fp8 the quickest engine's long products are not those that met the power limit, so the clock
# of a step comes from all engines: the median rate of products as long as a step's over that of
# products that run for milliseconds. It is told only where the table's power says that those sit
# at the limit.
LARGE, AS_IN_A_STEP_US, AT_LIMIT_US, AT_LIMIT = 4096, (200, 1000), 5000, 0.95


def read(path):
    table = json.loads(path.read_text())
    rows = [dict(zip(table["columns"], row)) for row in table["rows"]]
    return table, rows


def evenly(rows, count):
    """`count` of `rows`, which are in order, at equal distances."""
    return [rows[i * len(rows) // count] for i in range(min(count, len(rows)))]


def text_of(table):
    """One row a line, as the published tables have it."""
    lines = []
    for key, value in table.items():
        if key in ("rows", "held_out"):
            rows = ",\n".join("    " + json.dumps(row) for row in value)
            lines.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def rate_of(row):
    return row["m"] * row["n"] * row["k"] / row["median_us"]


def slowed_at_limit(rows, of_type):
    """How much slower large products are at the power limit; None where no power is told."""
    power = [r["power_w"] for r in rows if r.get("power_w") and r["median_us"] >= AT_LIMIT_US]
    if not power or statistics.median(power) < AT_LIMIT * max(power):
        return None
    large = [r for r in of_type if min(r[d] for d in "mnk") >= LARGE]
    short, least = AS_IN_A_STEP_US
    in_step = [rate_of(r) for r in large if short <= r["least_us"] < least]
    at_limit = [rate_of(r) for r in large if r["least_us"] >= AT_LIMIT_US]
    return round(statistics.median(in_step) / statistics.median(at_limit), 3)


def thin_products(folder, out):
    for name, device in DEVICES.items():
        path = folder / f"gemm_{name}.json"
        if not path.exists():
            continue
        table, rows = read(path)
        for dtype, (precision, time, held_out) in PRODUCTS.items():
            of_type = sorted((r for r in rows if r["gemm_dtype"] == dtype),
                             key=lambda r: (r["m"], r["n"], r["k"]))
            if not of_type:
                continue
            on_grid = [all(r[d] in PRODUCT_SIZES[d] for d in "mnk") for r in of_type]
            kept = [r for r, on in zip(of_type, on_grid) if on]
            others = [r for r, on in zip(of_type, on_grid) if not on]
            cells = lambda some: [[r["m"], r["n"], r["k"], r[time]] for r in some]
            slowed = slowed_at_limit(rows, of_type) if precision != "bf16" else None
            (out / f"gemm_{precision}_{device}_aiconfigurator.json").write_text(text_of({
                "stepcast_published": 1,
                "kind": "gemm",
                "source": source_of(table),
                "device": device,
                "precision": precision,
                "runs": "short",
                "unit": "us",
                "notes": f"forward products of inference engines, {time[:-3]} of them; "
                         "held_out: rows of other sizes, which no fit sees"
                         + ("; the time holds the cast of x" if precision == "fp8" else ""),
                **({"at_limit": slowed} if slowed else {}),
                "columns": ["m", "n", "k", "time"],
                "rows": cells(kept),
                "held_out": cells(evenly(others, held_out)),
            }))


# Attention: the kernel generation that the quickest engine's kernel stands for, and the head
# dimensions that engines have kernels for (192 falls back to another one on Blackwell).
ATTENTION = {
    "a100_sxm": ("fa2", {128}),
    "h100_sxm": ("fa3", {64, 128, 192, 256}),
    "h200_sxm": ("fa3", {64, 128, 192, 256}),
    "b200_sxm": ("cudnn", {64, 128, 256}),
    "b300_sxm": ("cudnn", {64, 128, 256}),
    "gb200": ("cudnn", {64, 128, 256}),
    "gb300": ("cudnn", {64, 128, 256}),
}
ATTENTION_SIZES = {
    "batch_size": {1, 2, 8},
    "num_heads": {8, 16, 24, 32, 64, 96},
    "isl": {512, 2048, 4096, 16384},
}
# A reading is a fault when it is so much quicker than the median of engines, or when it does more
# FLOPs a second than the same heads at a longer sequence.
FAULT_OF_ENGINES, FAULT_OF_LENGTHS = 1.8, 1.03


def sound_attention(rows, head_dims):
    """Rows of plain causal attention in bf16 without faults."""
    groups = {}
    for row in rows:
        plain = row["attn_dtype"] == "bfloat16" and row["window_size"] == 0
        if plain and row["head_dim"] in head_dims:
            key = tuple(row[k] for k in ("batch_size", "num_heads", "num_key_value_heads",
                                         "head_dim"))
            groups.setdefault(key, []).append(row)
    sound = []
    for key in sorted(groups):
        slowest = float("inf")
        for row in sorted(groups[key], key=lambda r: -r["isl"]):
            rate = row["isl"] ** 2 / row["least_us"]
            if rate > FAULT_OF_LENGTHS * slowest:
                continue
            slowest = min(slowest, rate)
            if row["median_us"] < FAULT_OF_ENGINES * row["least_us"]:
                sound.append(row)
    return sorted(sound, key=lambda r: [r[k] for k in ("head_dim", "isl", "batch_size",
                                                       "num_heads", "num_key_value_heads")])


def thin_attention(folder, out):
    for name, (kernel, head_dims) in ATTENTION.items():
        path = folder / f"attention_{name}.json"
        if not path.exists():
            continue
        table, rows = read(path)
        sound = sound_attention(rows, head_dims)
        kept, others = [], []
        for row in sound:
            on_grid = (all(row[k] in sizes for k, sizes in ATTENTION_SIZES.items())
                       and row["num_key_value_heads"] in (1, 8, row["num_heads"]))
            (kept if on_grid else others).append(row)
        cells = lambda some: [[r[k] for k in ("batch_size", "num_heads", "num_key_value_heads",
                                              "isl", "head_dim", "least_us")] for r in some]
        (out / f"attention_{DEVICES[name]}_aiconfigurator.json").write_text(text_of({
            "stepcast_published": 1,
            "kind": "attention",
            "source": source_of(table),
            "device": DEVICES[name],
            "kernel": kernel,
            "runs": "short",
            "unit": "us",
            "notes": "causal forward, the quickest of inference engines, which also write the "
                     "cache of keys and values; held_out: rows of other sizes, which no fit sees",
            "columns": ["batch", "heads", "kv_heads", "sequence", "head_dim", "time"],
            "rows": cells(kept),
            "held_out": cells(evenly(others, 240)),
        }))


# Grouped products: whole models are held out, every third in order of their sizes. The A100's
# readings are of one engine with an untuned kernel, ten times slower than its products.
GROUPED = ("h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200", "gb300")
GROUPED_PRECISIONS = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "fp4"}
GROUPED_TOKENS = 16384  # of the largest batches, which not every device has


def model_of(row):
    return tuple(row[k] for k in ("hidden_size", "inter_size", "topk", "num_experts"))


def thin_grouped(folder, out):
    for name in GROUPED:
        path = folder / f"moe_{name}.json"
        if not path.exists():
            continue
        table, all_rows = read(path)
        ungated = {model_of(r) for r in all_rows if "nongated" in table["from"][r["least_from"]]}
        for dtype, precision in GROUPED_PRECISIONS.items():
            rows = [r for r in all_rows
                    if r["moe_dtype"] == dtype and model_of(r) not in ungated]
            if rows:
                write_grouped(name, table, rows, precision, out)


def write_grouped(name, table, rows, precision, out):
    rows = sorted((r for r in rows
                   if r["distribution"] == "balanced" and r["num_tokens"] <= GROUPED_TOKENS),
                  key=lambda r: (*model_of(r), r["moe_ep_size"], r["num_tokens"]))
    unseen = set(sorted({model_of(r) for r in rows})[::3])
    columns = ["hidden_size", "inter_size", "topk", "num_experts", "moe_ep_size", "num_tokens",
               "least_us"]
    cells = lambda some: [[r[k] for k in columns] for r in some]
    of_type = "" if precision == "bf16" else f"{precision}_"
    (out / f"grouped_{of_type}{DEVICES[name]}_aiconfigurator.json").write_text(text_of({
        "stepcast_published": 1,
        "kind": "grouped",
        "source": source_of(table),
        "device": DEVICES[name],
        **({} if precision == "bf16" else {"precision": precision}),
        "unit": "us",
        "notes": "gate and up, activation, down of one rank's experts, the quickest of "
                 "inference engines; balanced; held_out: models that no fit sees",
        "columns": ["hidden", "inter", "top_k", "experts", "ranks", "tokens", "time"],
        "rows": cells([r for r in rows if model_of(r) not in unseen]),
        "held_out": cells([r for r in rows if model_of(r) in unseen]),
    }))


# Collectives: what the topologies say of these machines, and which group sizes others have not
# measured better. The tables hold powers of two, which are all kept.
MACHINES = {
    "a100_sxm": ({"architecture": "ampere", "scale_up_bandwidth": "300 GB/s", "nvls": False},
                 {"all_reduce": (2, 4, 8), "all_gather": (2, 4, 8), "reduce_scatter": (2, 4, 8),
                  "alltoall": (2, 4, 8)}),
    "h100_sxm": ({"architecture": "hopper", "scale_up_bandwidth": "450 GB/s", "nvls": True},
                 {"all_reduce": (2, 4), "all_gather": (2, 4, 8), "reduce_scatter": (2, 4, 8),
                  "alltoall": (2, 4, 8)}),
    "b200_sxm": ({"architecture": "blackwell", "scale_up_bandwidth": "900 GB/s", "nvls": True},
                 {"all_reduce": (2, 4), "all_gather": (2, 4), "reduce_scatter": (2, 4),
                  "alltoall": (2, 4)}),
}
COLLECTIVES = {"all_reduce": "all_reduce", "all_gather": "all_gather",
               "reduce_scatter": "reduce_scatter", "alltoall": "all_to_all"}


def collective_table(name, source, rows, operation, ranks):
    """Median over NCCL's versions; sizes in elements of two bytes."""
    times = {}
    for row in rows:
        if (row["op_name"], row["num_gpus"], row["nccl_dtype"]) == (operation, ranks, "half"):
            times.setdefault(2 * row["message_size"], []).append(row["median_us"])
    machine, _ = MACHINES[name]
    return {
        "id": f"{name.split('_')[0]}x{ranks}-{COLLECTIVES[operation].replace('_', '-')}"
              "-aiconfigurator",
        "source": source,
        "architecture": machine["architecture"],
        "scale_up": "nvswitch",
        "scale_up_bandwidth": machine["scale_up_bandwidth"],
        "gpus_per_node": 8,
        "nvls": machine["nvls"],
        "cpu": "intel",
        "collective": COLLECTIVES[operation],
        "ranks": ranks,
        "domains": 1,
        "launch": "own",
        "rows_bytes_us": [[size, statistics.median(times[size])] for size in sorted(times)],
    }


def thin_collectives(folder, out):
    tables = []
    for name, (_, groups) in MACHINES.items():
        path = folder / f"nccl_{name}.json"
        if not path.exists():
            continue
        table, rows = read(path)
        for operation, sizes in groups.items():
            for ranks in sizes:
                tables.append(collective_table(name, source_of(table), rows, operation, ranks))
    lines = ",\n".join("  " + json.dumps(table) for table in tables)
    (out / "collectives_aiconfigurator.json").write_text(
        '{\n "stepcast_published_collectives": 1,\n "convention": "bytes as nccl-tests counts '
        f'them, median time over versions of NCCL in us",\n "tables": [\n{lines}\n ]\n}}\n')


def source_of(table):
    """The repository and commit, without how the tables came here."""
    return ", ".join(table["source"].split(", ")[:3])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="folder of measured tables")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("calibrate/published"))
    arguments = parser.parse_args()
    thin_products(arguments.folder, arguments.out)
    thin_attention(arguments.folder, arguments.out)
    thin_grouped(arguments.folder, arguments.out)
    thin_collectives(arguments.folder, arguments.out)


if __name__ == "__main__":
    main()
