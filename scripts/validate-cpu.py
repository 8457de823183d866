#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calibrates this machine, runs layouts for real and writes docs/validation-cpu.md.

    scripts/validate-cpu.py [--repeat 3] [--only REGEX] [--lab] [-o docs/validation-cpu.md]
    scripts/validate-cpu.py --readme --repeat 5      # writes docs/validation-readme.md

Calibration and run of a layout take turns, --repeat times: a machine that is not alone changes its
speed within minutes. Forecast, measured step time and error are the medians of the turns. The
layouts with links of their own need root (docs/lab.md): --lab adds them. --readme takes the
layouts of the README instead, and one of experts.
"""

import argparse
import datetime
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPCAST = ROOT / "build/release/stepcast"
LAB = ROOT / "scripts/lab.sh"


def gpt(layers, hidden, heads, vocab=4096, sequence=256):
    return {"layers": layers, "hidden": hidden, "heads": heads, "vocab": vocab,
            "max_positions": sequence, "mlp": "gelu", "norm": "layernorm", "position": "learned",
            "biases": True, "vocab_multiple": 1, "dropout": 0}


def llama(layers, hidden, heads, kv_heads, ffn, vocab=4096, sequence=256):
    return {"layers": layers, "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "ffn": ffn,
            "vocab": vocab, "max_positions": sequence, "mlp": "swiglu", "norm": "rmsnorm",
            "position": "rope", "biases": False, "tied_embeddings": False, "vocab_multiple": 1,
            "dropout": 0}


GPT4 = gpt(4, 256, 4, vocab=2048)
GPT8 = gpt(8, 256, 4, vocab=2048)
GPT12 = gpt(6, 384, 6)
GPT29 = gpt(8, 512, 8)
LLAMA17 = llama(6, 384, 6, 2, 1024, vocab=8192)
# The executor has experts without biases, and no gradient norm over sharded experts.
EXPERTS = {**GPT4, "biases": False, "moe": {"experts": 4, "top_k": 2, "ffn": 512}}


def case(name, ranks, layout, model=GPT12, lab=None, batch=8, **training):
    layout = {"micro_batch": 2, **layout}
    cluster = {"base": str(lab)} if lab else {"base": "local", "gpus": ranks}
    return {"name": name, "ranks": ranks, "lab": lab, "scenario": {
        "stepcast": 1, "model": model, "cluster": cluster,
        "training": {"global_batch": batch, "sequence_length": model["max_positions"],
                     "precision": "fp32", "framework": "native", "attention": "flash", **training},
        "layout": layout}}


def shaped(file, label, layouts, model=GPT4, **training):
    """The layouts on the links of a topology of topologies/lab."""
    path = ROOT / "topologies/lab" / file
    topology = json.loads(path.read_text())
    ranks = topology["nodes"] * topology["gpus_per_node"]
    return [case(f"{name}, {label}", ranks, layout, model, path, batch=16, **training)
            for name, layout in layouts.items()]


FOUR = {
    "dp 4": {"dp": 4},
    "pp 4": {"pp": 4},
    "tp 2, pp 2": {"tp": 2, "pp": 2},
    "dp 2, pp 2": {"dp": 2, "pp": 2},
    "dp 2, pp 2, interleaved": {"dp": 2, "pp": 2, "schedule": "interleaved", "virtual_stages": 2},
    "dp 4, zero 3": {"dp": 4, "zero": 3},
}
# Reductions of one chunk's small buckets meet the sends of the other chunks on a rank's port.
MEETING = {
    f"dp 2, pp 2, {chunks} chunks, small buckets":
        {"dp": 2, "pp": 2, "schedule": "interleaved", "virtual_stages": chunks} for chunks in (2, 4)
}
EIGHT = {
    "tp 2, dp 2, pp 2": {"tp": 2, "dp": 2, "pp": 2},
    "dp 4, pp 2": {"dp": 4, "pp": 2},
    "dp 2, pp 4": {"dp": 2, "pp": 4},
    "dp 8": {"dp": 8},
}


def readme_cases():
    """The scenario of the README with the layouts that it names, and a small model with experts."""
    return [
        case("dp 2", 2, {"dp": 2}, GPT4),
        case("tp 2", 2, {"tp": 2}, GPT4),
        case("pp 2", 2, {"pp": 2}, GPT4),
        case("dp 2, zero 3", 2, {"dp": 2, "zero": 3}, GPT4),
        case("pp 2, zb-h1", 2, {"pp": 2, "schedule": "zb-h1"}, GPT4),
        case("ep 2, four experts", 2, {"dp": 2, "ep": 2, "zero": 1}, EXPERTS),
    ]


def cases(lab):
    out = [
        case("GPT 12 M", 1, {}),
        case("GPT 12 M, selective recomputation, unfused", 1, {"recompute": "selective"},
             attention="unfused"),
        case("GPT 12 M, full recomputation", 1, {"recompute": "full"}),
        case("GPT 29 M", 1, {}, GPT29),
        case("Llama form 17 M", 1, {}, LLAMA17),
        case("dp 2", 2, {"dp": 2}),
        case("dp 2, zero 1", 2, {"dp": 2, "zero": 1}),
        case("dp 2, zero 2", 2, {"dp": 2, "zero": 2}),
        case("dp 2, zero 3", 2, {"dp": 2, "zero": 3}),
        case("tp 2", 2, {"tp": 2, "sequence_parallel": False}),
        case("tp 2, sequence parallel", 2, {"tp": 2}),
        case("cp 2, ring", 2, {"cp": 2}),
        case("cp 2, all to all", 2, {"cp": 2, "cp_method": "all_to_all"}),
        case("pp 2, gpipe", 2, {"pp": 2, "schedule": "gpipe"}),
        case("pp 2, 1f1b", 2, {"pp": 2}),
        case("pp 2, interleaved", 2, {"pp": 2, "schedule": "interleaved", "virtual_stages": 3}),
        case("ep 2, four experts", 2, {"dp": 2, "ep": 2, "zero": 1}, EXPERTS),
        case("offload of the optimizer", 1, {"zero": 1, "offload": {"optimizer": 1}}),
        case("dp 2, zero 2, offload of the optimizer", 2,
             {"dp": 2, "zero": 2, "offload": {"optimizer": 1}}),
        case("dp 2, zero 3, offload of optimizer and parameters", 2,
             {"dp": 2, "zero": 3, "offload": {"optimizer": 1, "parameters": 1}}),
        case("offload of activations", 1, {"offload": {"activations": 1}}),
        case("pp 2, offload of activations", 2, {"pp": 2, "offload": {"activations": 1}}),
    ]
    if lab:
        out += shaped("flat4-100m.json", "100 Mb/s", FOUR)
        out += shaped("flat4-100m.json", "100 Mb/s", MEETING, GPT8, bucket_elements=500_000)
        out += shaped("flat4-1g.json", "1 Gb/s", FOUR)
        out += shaped("nodes2x2.json", "two nodes of two", FOUR)
        out += shaped("nodes2x4.json", "two nodes of four", EIGHT)
    return out


def run(one, *arguments):
    command = [str(STEPCAST), *map(str, arguments)]
    if one["lab"]:
        command = [str(LAB), str(one["lab"]), "--", *command]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def commit():
    """The commit of the tree, with a + where it has changes."""
    described = subprocess.run(["git", "describe", "--always", "--dirty=+", "--exclude=*"],
                               capture_output=True, text=True, cwd=ROOT)
    return described.stdout.strip() or "unknown"


def measure(one, folder, repeat, steps, budget):
    build = commit()
    file = folder / (one["name"].translate(str.maketrans(" ,/", "---")) + ".json")
    file.write_text(json.dumps(one["scenario"], indent=1))
    results = []
    for turn in range(repeat):
        profile = file.with_suffix(f".profile{turn}.json")
        made = run(one, "calibrate", "--backend", "cpu", file, "--no-grid", "--budget", budget,
                   "--quiet", "-o", profile)
        if made.returncode:
            return None, made.stderr.strip()
        numerics = [] if turn == 0 else ["--no-numerics"]
        done = run(one, "validate", file, "--backend", "cpu", "--profile", profile, "--steps",
                   steps, "--format", "json", "--quiet", *numerics)
        if done.returncode:
            return None, done.stderr.strip()
        result = json.loads(done.stdout)
        result.pop("operations", None)
        result["build"] = build
        if one["lab"]:
            alone = run(one, "predict", file, "--profile", profile, "--no-contention", "--format",
                        "json", "--quiet")
            if alone.returncode:
                return None, alone.stderr.strip()
            result["alone_s"] = json.loads(alone.stdout)["step_time_s"]
        results.append(result)
    return results, ""


def percent(value):
    return f"{100 * value:+.1f} %"


def seconds(value):
    return f"{value:.3f} s" if value >= 1 else f"{1e3 * value:.1f} ms"


def median(results, side, key="step_time_s"):
    return statistics.median(r[side][key] for r in results)


def error_of(results):
    """The error of the middle turn: forecast and run of one turn share the machine's speed."""
    return median(results, "error")


def row(one, results):
    errors = [r["error"]["step_time_s"] for r in results]
    alone = [r["alone_s"] for r in results if "alone_s" in r]
    cells = [one["name"], one["ranks"], len(results), seconds(median(results, "predicted")),
             seconds(median(results, "measured")), percent(error_of(results)),
             f"{percent(min(errors))} to {percent(max(errors))}",
             seconds(statistics.median(alone)) if alone else "",
             f"{100 * median(results, 'predicted', 'bubble_fraction'):.1f} %",
             f"{100 * median(results, 'measured', 'bubble_fraction'):.1f} %",
             percent(median(results, "error", "peak_memory_bytes")),
             f"{results[0]['numerics']['parameter_relative_error']:.0e}"]
    return "| " + " | ".join(map(str, cells)) + " |"


def summary(name, errors):
    absolute = sorted(abs(e) for e in errors)
    return (f"- {name}: {len(absolute)} layouts, median {100 * statistics.median(absolute):.1f} %, "
            f"worst {100 * absolute[-1]:.1f} %")


def kendall(pairs):
    agree = disagree = 0
    for i, (p, m) in enumerate(pairs):
        for q, n in pairs[i + 1:]:
            agree += (p - q) * (m - n) > 0
            disagree += (p - q) * (m - n) < 0
    return (agree - disagree) / max(1, agree + disagree)


DISCUSSION = "\n## What it shows\n"


def discussion(page):
    """Returns what people have written below the figures."""
    text = page.read_text() if page.exists() else ""
    return text[text.index(DISCUSSION):] if DISCUSSION in text else ""


def page(title, done, failed, machine):
    builds = sorted({result.get("build", "unknown") for _, results in done for result in results})
    lines = [f"# {title}", "",
             "Each row calibrates this machine for one layout, forecasts its step, trains it for",
             "real and sets the two beside each other, in as many turns as the row says:",
             "`forecast`, `measured` and `error` are medians of the turns, `spread` the",
             "smallest and the largest error of a turn. Written by",
             "`scripts/validate-cpu.py` (`--help`)",
             f"on {machine['processor']}, {machine['cores']} cores,"
             f" {datetime.date.today().isoformat()}, with commit {', '.join(builds)}.", "",
             "| layout | ranks | turns | forecast | measured | error | spread | alone | bubble |"
             " measured | memory | parameters |",
             "|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|"]
    lines += [row(one, results) for one, results in done]
    lines += ["", "`alone` is the forecast in which no transfer shares a link "
              "(`predict --no-contention`); `memory` the error", "of the peak; `parameters` their "
              "relative distance from those of one rank after three steps.", ""]

    groups = [("one rank", lambda o: o["ranks"] == 1),
              ("two ranks", lambda o: o["ranks"] == 2),
              ("shaped links", lambda o: o["lab"])]
    for name, belongs in groups:
        errors = [error_of(results) for one, results in done if belongs(one)]
        if errors:
            lines.append(summary(name, errors))
    rankings = {}
    for one, results in done:
        if one["lab"]:
            key = (one["lab"].stem, one["scenario"]["model"]["layers"])
            rankings.setdefault(key, []).append(
                (median(results, "predicted"), median(results, "measured")))
    for (topology, layers), pairs in sorted(rankings.items()):
        lines.append(f"- ranking of layouts of {layers} layers on {topology}: Kendall's tau "
                     f"{kendall(pairs):.2f} over {len(pairs)}")
    turns = [result for _, results in done for result in results]
    known = [r["measured"]["machine_load"] for r in turns if "machine_load" in r["measured"]]
    if known:
        lines.append(f"- turns in which others used more than 5 % of the processors: "
                     f"{sum(load['busy'] for load in known)} of {len(known)}")
    for one, why in failed:
        lines += ["", f"Not measured: {one['name']}: {why.splitlines()[-1] if why else '?'}"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--budget", type=float, default=15, help="seconds of each calibration")
    parser.add_argument("--only", default="", help="layouts whose name this finds")
    parser.add_argument("--lab", action="store_true", help="also layouts on shaped links (root)")
    parser.add_argument("--readme", action="store_true", help="the README's layouts alone")
    parser.add_argument("--results", help="what is measured, kept: the page has all of it "
                        "(build/validation-cpu.json)")
    parser.add_argument("-o", "--output", help="the page (docs/validation-cpu.md)")
    options = parser.parse_args()
    name = "validation-readme" if options.readme else "validation-cpu"
    title = "The layouts of the README on the CPU" if options.readme else "Validation on the CPU"
    page_file = pathlib.Path(options.output or ROOT / f"docs/{name}.md")
    store, failed = pathlib.Path(options.results or ROOT / f"build/{name}.json"), []
    kept = json.loads(store.read_text()) if store.exists() else {}
    measured = readme_cases() if options.readme else cases(options.lab)
    with tempfile.TemporaryDirectory(prefix="stepcast-validation-") as folder:
        for one in measured:
            if not re.search(options.only, one["name"]):
                continue
            results, why = measure(one, pathlib.Path(folder), options.repeat, options.steps,
                                   options.budget)
            if results:
                kept[one["name"]] = results
                store.write_text(json.dumps(kept))
                print(row(one, results), flush=True)
            else:
                failed.append((one, why))
                print(f"{one['name']}: {why}", file=sys.stderr, flush=True)
    listed = readme_cases() if options.readme else cases(True)
    done = [(one, kept[one["name"]]) for one in listed if one["name"] in kept]
    doctor = json.loads(subprocess.run([str(STEPCAST), "doctor", "--format", "json"],
                                       capture_output=True, text=True, check=True).stdout)
    if done:
        machine = {"processor": doctor["processor"], "cores": doctor["cores"]}
        page_file.write_text(page(title, done, failed, machine) + discussion(page_file))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
