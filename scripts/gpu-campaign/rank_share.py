# SPDX-License-Identifier: Apache-2.0
"""Rank 0 of a scenario holds and does this: local shapes, parameters, micro-batches.

Read from `resolved` of `stepcast predict --format json`: every default is stated there. Plain
Python, no PyTorch.
"""

import dataclasses
import json
import math
import subprocess

MODEL_KEYS = {
    "name", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "max_positions",
    "mlp", "norm", "position", "tied_embeddings", "biases", "dropout", "qkv_bias",
    "attention_output_bias", "norm_bias", "vocab_multiple", "final_norm",
    # Values inside a formula, which change no shape and no time.
    "norm_epsilon", "rope_base", "rope_scaling", "rope_factor",
}


NATIVE_VOCAB_MULTIPLE = 128  # src/layout/frameworks/native.cpp


class Refused(Exception):
    """A scenario that is legal, but that the measurement in PyTorch does not know."""


@dataclasses.dataclass(frozen=True)
class Share:
    """Sizes are those of one rank; `rows` is the part of a sequence between two blocks."""

    name: str
    layers: int
    first: bool  # has the embedding
    last: bool   # has the final norm, head and loss
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    positions: int  # rows of a learned table, else 0
    gated: bool
    layernorm: bool
    rope: bool
    tied: bool
    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    norm_bias: bool
    dropout: float
    batch: int
    sequence: int
    rows: int
    micro_batches: int
    tp: int
    owners: int  # ranks that an optimizer's state is spread over
    clip: bool

    def norm(self, name):
        yield f"{name}.weight", (self.hidden,)
        if self.norm_bias:
            yield f"{name}.bias", (self.hidden,)

    def block(self):
        """(name, shape) of one layer; weights are (outputs, inputs) as linear layers hold them."""
        inner = self.heads * self.head_dim
        queries_keys_values = inner + 2 * self.kv_heads * self.head_dim
        up = (2 if self.gated else 1) * self.ffn
        yield from self.norm("attention_norm")
        yield "qkv.weight", (queries_keys_values, self.hidden)
        if self.qkv_bias:
            yield "qkv.bias", (queries_keys_values,)
        yield "output.weight", (self.hidden, inner)
        if self.output_bias:
            yield "output.bias", (self.hidden,)
        yield from self.norm("mlp_norm")
        yield "up.weight", (up, self.hidden)
        if self.mlp_bias:
            yield "up.bias", (up,)
        yield "down.weight", (self.hidden, self.ffn)
        if self.mlp_bias:
            yield "down.bias", (self.hidden,)

    def outside(self):
        """(name, shape) of embedding, final norm and head, as far as this stage has them."""
        if self.first:
            yield "embedding", (self.vocab, self.hidden)
            if self.positions:
                yield "positions", (self.positions, self.hidden)
        if self.last:
            yield from self.norm("final_norm")
            if not (self.tied and self.first):
                yield "head", (self.vocab, self.hidden)

    def parameters(self):
        def count(tensors):
            return sum(math.prod(shape) for _, shape in tensors)
        return self.layers * count(self.block()) + count(self.outside())

    @property
    def sequence_parallel(self):
        return self.rows != self.sequence


def refuse_unless(known, path, value, accepted):
    if not known:
        raise Refused(f"{path}: {value} is not measured in PyTorch, only {accepted}")


def check(model, training, layout):
    if "moe" in model:
        raise Refused("model.moe: models with experts are not measured in PyTorch")
    for key in sorted(set(model) - MODEL_KEYS):
        raise Refused(f"model.{key}: not measured in PyTorch")
    refuse_unless(model["position"] in ("learned", "rope"), "model.position", model["position"],
                  "learned and rope")
    refuse_unless(model.get("final_norm", True), "model.final_norm", "false", "true")
    for key, accepted in (("precision", "bf16"), ("optimizer", "adamw"), ("mode", "pretrain"),
                          ("attention", "flash"), ("framework", "native"),
                          ("grad_precision", "bf16")):
        refuse_unless(training.get(key, accepted) == accepted, f"training.{key}",
                      training.get(key), accepted)
    for key in ("cp", "ep", "virtual_stages"):
        refuse_unless(layout.get(key, 1) == 1, f"layout.{key}", layout.get(key), "1")
    mode = layout.get("recompute", {}).get("mode", "none")
    refuse_unless(mode == "none", "layout.recompute", mode, "none")
    for what, share in layout.get("offload", {}).items():
        refuse_unless(share == 0, f"layout.offload.{what}", share, "0")


def layers_of_first_stage(model, layout):
    """The first stages get what is left over; `account_for_*` count as a layer each."""
    if layout.get("stage_layers"):
        return layout["stage_layers"][0]
    stages = layout["pp"]
    embedding = 1 if layout.get("account_for_embedding") else 0
    loss = 1 if layout.get("account_for_loss") else 0
    places = model["layers"] + embedding + loss
    return -(-places // stages) - embedding - (loss if stages == 1 else 0)


def share_of(resolved):
    """Rank 0's share; raises Refused for what is not measured."""
    model, training, layout = (resolved[key] for key in ("model", "training", "layout"))
    check(model, training, layout)
    tp, pp, dp = (layout[key] for key in ("tp", "pp", "dp"))
    biases = model["biases"]
    layernorm = model["norm"] == "layernorm"
    unit = model.get("vocab_multiple", NATIVE_VOCAB_MULTIPLE) * tp
    sequence = training["sequence_length"]
    parallel = layout.get("sequence_parallel", False) and tp > 1
    return Share(
        name=model["name"], layers=layers_of_first_stage(model, layout), first=True, last=pp == 1,
        hidden=model["hidden"], heads=model["heads"] // tp,
        kv_heads=max(1, model["kv_heads"] // tp), head_dim=model["head_dim"],
        ffn=model["ffn"] // tp, vocab=-(-model["vocab"] // unit) * unit // tp,
        positions=model["max_positions"] if model["position"] == "learned" else 0,
        gated=model["mlp"] == "swiglu", layernorm=layernorm, rope=model["position"] == "rope",
        tied=model["tied_embeddings"], qkv_bias=model.get("qkv_bias", biases),
        output_bias=model.get("attention_output_bias", biases), mlp_bias=biases,
        norm_bias=model.get("norm_bias", biases and layernorm),
        dropout=max(0.0, model.get("dropout", 0.0)), batch=layout["micro_batch"],
        sequence=sequence, rows=sequence // tp if parallel else sequence,
        micro_batches=training["global_batch"] // (layout["micro_batch"] * dp), tp=tp,
        owners=dp if layout["zero"] >= 1 else 1, clip=training["grad_clip"] != "none")


def left_out(resolved):
    """Says what a rank among others would do besides."""
    layout = resolved["layout"]
    out = []
    if layout["tp"] > 1:
        out.append(f"collectives of {layout['tp']} tensor-parallel ranks: what they would bring is "
                   "noise or the rank's own part")
    if layout["pp"] > 1:
        out.append(f"transfers between {layout['pp']} stages and waiting for them: the gradient of "
                   "the stage's output is a fixed random tensor, and each micro-batch's backward "
                   "follows its forward, so that memory holds the activations of one")
    if layout["dp"] > 1:
        out.append(f"reduction of gradients over {layout['dp']} data-parallel ranks")
    if layout["zero"] >= 1:
        out.append("gathers of parameters: they and their gradients are held whole, and the "
                   f"optimizer updates 1/{layout['dp']} of each")
    return out


def forecast(binary, data, scenario):
    """Asks `stepcast predict` about a scenario's file; raises Refused with its message."""
    command = [str(binary), "predict", str(scenario), "--format", "json"]
    if data:
        command += ["--data", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):  # 3: does not fit in the memory of the forecast's GPU
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Refused("stepcast predict: " + lines[0])
    return json.loads(done.stdout)
