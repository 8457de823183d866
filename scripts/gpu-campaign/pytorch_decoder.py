# SPDX-License-Identifier: Apache-2.0
"""One rank's part of a decoder and its optimizer in PyTorch (2.2 or later), on a Share.

Weights are plain tensors in bf16 and the layers functions of them, so that torch.compile compiles
one block for all layers. Under sequence parallelism a block is cut where ranks would communicate,
and its pieces are compiled one by one.
"""

import math

ROTARY_BASE = 10000
NORM_EPSILON = 1e-5
DEVIATION = 0.02
LARGEST_NORM = 1.0
GROUP_ELEMENTS = 1 << 28  # updated at once: bounds the fp32 copy of gradients
BATCHES = 4  # of text, which take turns: no step finds its rows of the embedding in the cache


def version(torch):
    return tuple(int("".join(c for c in part if c.isdigit()) or 0)
                 for part in torch.__version__.split("+")[0].split(".")[:2])


def rotary(torch, share, device):
    """cos and sin of (sequence, head_dim), for halves that turn with each other."""
    half = share.head_dim // 2
    rates = ROTARY_BASE ** (-torch.arange(half, device=device, dtype=torch.float32) / half)
    angles = torch.outer(torch.arange(share.sequence, device=device, dtype=torch.float32), rates)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)


def make_pieces(torch, share):
    """Functions on tensors: normed, attend, mlp, join, block, loss."""
    functional = torch.nn.functional
    linear = functional.linear
    names = [name for name, _ in share.block()]
    sizes = [count * share.head_dim for count in (share.heads, share.kv_heads, share.kv_heads)]
    grouped = share.heads != share.kv_heads
    native_groups = version(torch) >= (2, 5)
    native_rms = hasattr(functional, "rms_norm")
    whole = share.tp == 1

    def normed(x, weight, bias=None):
        if share.layernorm:
            return functional.layer_norm(x, (share.hidden,), weight, bias, NORM_EPSILON)
        if native_rms:
            return functional.rms_norm(x, (share.hidden,), weight, NORM_EPSILON)
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + NORM_EPSILON)
        return wide.to(x.dtype) * weight

    def dropped(x):
        return functional.dropout(x, share.dropout, training=True) if share.dropout else x

    def turned(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-second, first), dim=-1) * sin

    def attend(x, cos, sin, weight, bias, output, output_bias):
        batch, sequence = x.shape[0], x.shape[1]
        query, key, value = linear(x, weight, bias).split(sizes, dim=-1)
        query = query.view(batch, sequence, share.heads, share.head_dim).transpose(1, 2)
        key = key.view(batch, sequence, share.kv_heads, share.head_dim).transpose(1, 2)
        value = value.view(batch, sequence, share.kv_heads, share.head_dim).transpose(1, 2)
        if share.rope:
            query, key = turned(query, cos, sin), turned(key, cos, sin)
        options = {"is_causal": True, "dropout_p": share.dropout}
        if grouped and native_groups:
            options["enable_gqa"] = True
        elif grouped:
            key = key.repeat_interleave(share.heads // share.kv_heads, dim=1)
            value = value.repeat_interleave(share.heads // share.kv_heads, dim=1)
        out = functional.scaled_dot_product_attention(query, key, value, **options)
        out = out.transpose(1, 2).reshape(batch, sequence, share.heads * share.head_dim)
        # Row-parallel: where ranks sum, the bias comes after the sum.
        return linear(out, output, output_bias if whole else None)

    def mlp(x, up, up_bias, down, down_bias):
        inner = linear(x, up, up_bias)
        if share.gated:
            gate, value = inner.chunk(2, dim=-1)
            inner = functional.silu(gate) * value
        else:
            inner = functional.gelu(inner, approximate="tanh")
        return linear(inner, down, down_bias if whole else None)

    def join(x, y, bias):
        return x + dropped(y if bias is None or whole else y + bias)

    def joined_and_normed(x, y, bias, weight, norm_bias):
        x = join(x, y, bias)
        return x, normed(x, weight, norm_bias)

    def block(x, cos, sin, *tensors):
        w = dict(zip(names, tensors))
        y = attend(normed(x, w["attention_norm.weight"], w.get("attention_norm.bias")), cos, sin,
                   w["qkv.weight"], w.get("qkv.bias"), w["output.weight"], w.get("output.bias"))
        x, h = joined_and_normed(x, y, w.get("output.bias"), w["mlp_norm.weight"],
                                 w.get("mlp_norm.bias"))
        y = mlp(h, w["up.weight"], w.get("up.bias"), w["down.weight"], w.get("down.bias"))
        return join(x, y, w.get("down.bias"))

    def loss(x, targets, table):
        logits = linear(x, table).float()
        return functional.cross_entropy(logits.view(-1, share.vocab), targets.reshape(-1))

    return {"normed": normed, "attend": attend, "mlp": mlp, "join": join,
            "joined_and_normed": joined_and_normed, "block": block, "loss": loss,
            "dropped": dropped}


def make_exchange(torch):
    """Stand-ins for the all-gather and reduce-scatter along the sequence, without any work.

    What other ranks would bring is noise that is there already; what would go to them is dropped.
    """
    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, noise):
            ctx.rows = x.shape[1]
            return noise.detach()

        @staticmethod
        def backward(ctx, gradient):
            return gradient[:, :ctx.rows], None

    class Scatter(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, noise, rows):
            ctx.save_for_backward(noise)
            return x[:, :rows].detach()

        @staticmethod
        def backward(ctx, gradient):
            return ctx.saved_tensors[0], None, None

    return Gather.apply, Scatter.apply


class Rank:
    """Weights, pieces and one micro-batch's forward and backward."""

    def __init__(self, torch, share, compiled, device="cuda"):
        self.torch, self.share = torch, share
        generator = torch.Generator(device=device)
        generator.manual_seed(0)

        def noise(*shape, deviation=DEVIATION):
            out = torch.empty(*shape, device=device, dtype=torch.bfloat16)
            return out.normal_(0.0, deviation, generator=generator)

        def weight(name, shape):
            out = noise(*shape)
            if len(shape) == 1:
                out.fill_(1.0 if name.endswith("norm.weight") else 0.0)
            return out.requires_grad_(True)

        self.layers = [{name: weight(name, shape) for name, shape in share.block()}
                       for _ in range(share.layers)]
        self.outside = {name: weight(name, shape) for name, shape in share.outside()}
        self.cos, self.sin = rotary(torch, share, device) if share.rope else (None, None)
        self.pieces = make_pieces(torch, share)
        if compiled:
            self.pieces = {name: torch.compile(piece, dynamic=False)
                           for name, piece in self.pieces.items()}
        whole = (share.batch, share.sequence, share.hidden)
        rows = (share.batch, share.rows, share.hidden)
        if share.sequence_parallel:
            self.gather, self.scatter = make_exchange(torch)
            self.noise = noise(*whole, deviation=1.0)
            self.noise_gradient = noise(*whole, deviation=1e-4)
        self.output_gradient = None if share.last else noise(*rows, deviation=1e-4)
        self.turn = 0
        shape = (BATCHES * share.micro_batches, share.batch, share.sequence + 1)
        self.tokens = torch.randint(share.vocab, shape, device=device, generator=generator)

    def parameters(self):
        out = [tensor for layer in self.layers for tensor in layer.values()]
        return out + list(self.outside.values())

    def embedded(self, tokens):
        share, functional = self.share, self.torch.nn.functional
        # Each tensor-parallel rank looks up all tokens in its slice before the sum is scattered.
        x = functional.embedding(tokens, self.outside["embedding"])
        if share.sequence_parallel:
            x = self.scatter(x, self.noise_gradient, share.rows)
        if share.positions:
            x = x + self.outside["positions"][:share.rows]
        return self.pieces["dropped"](x) if share.dropout else x

    def layer_in_pieces(self, x, w):
        pieces = self.pieces
        h = pieces["normed"](x, w["attention_norm.weight"], w.get("attention_norm.bias"))
        y = pieces["attend"](self.gather(h, self.noise), self.cos, self.sin, w["qkv.weight"],
                             w.get("qkv.bias"), w["output.weight"], None)
        y = self.scatter(y, self.noise_gradient, self.share.rows)
        x, h = pieces["joined_and_normed"](x, y, w.get("output.bias"), w["mlp_norm.weight"],
                                           w.get("mlp_norm.bias"))
        y = pieces["mlp"](self.gather(h, self.noise), w["up.weight"], w.get("up.bias"),
                          w["down.weight"], None)
        y = self.scatter(y, self.noise_gradient, self.share.rows)
        return pieces["join"](x, y, w.get("down.bias"))

    def micro_batch(self):
        """Forward and backward of the next; the loss where this stage has one, else None."""
        share = self.share
        tokens = self.tokens[self.turn]
        self.turn = (self.turn + 1) % (BATCHES * share.micro_batches)
        x = self.embedded(tokens[:, :-1])
        for layer in self.layers:
            if share.sequence_parallel:
                x = self.layer_in_pieces(x, layer)
            else:
                x = self.pieces["block"](x, self.cos, self.sin, *layer.values())
        if not share.last:
            x.backward(self.output_gradient)
            return None
        x = self.pieces["normed"](x, self.outside["final_norm.weight"],
                                  self.outside.get("final_norm.bias"))
        if share.sequence_parallel:
            x = self.gather(x, self.noise)
        table = self.outside["embedding" if share.tied and share.first else "head"]
        loss = self.pieces["loss"](x, tokens[:, 1:], table)
        (loss / share.micro_batches).backward()
        return loss.detach()


class Update:
    """Clipping at norm 1 and fused AdamW on fp32 master weights, from bf16 gradients.

    Of each parameter the first 1/owners of the elements.
    """

    def __init__(self, torch, parameters, share):
        self.torch, self.clip = torch, share.clip
        self.parameters = parameters
        self.counts = [-(-p.numel() // share.owners) for p in parameters]
        self.groups = []
        for indices in grouped(self.counts, GROUP_ELEMENTS):
            masters = [self.slice(parameters[i], i).float() for i in indices]
            optimizer = torch.optim.AdamW(masters, lr=3e-4, betas=(0.9, 0.95), eps=1e-8,
                                          weight_decay=0.1, fused=True)
            self.groups.append((indices, masters, optimizer))
        most = max(sum(self.counts[i] for i in indices) for indices, _, _ in self.groups)
        self.wide = torch.empty(most, device=parameters[0].device, dtype=torch.float32)

    def slice(self, tensor, index):
        return tensor.detach().reshape(-1)[:self.counts[index]]

    def copy(self, targets, sources):
        if hasattr(self.torch, "_foreach_copy_"):
            self.torch._foreach_copy_(targets, sources)
        else:
            for target, source in zip(targets, sources):
                target.copy_(source)

    def clip_gradients(self, gradients):
        torch = self.torch
        norms = torch.stack([norm.float() for norm in torch._foreach_norm(gradients)])
        factor = LARGEST_NORM / (torch.linalg.vector_norm(norms) + 1e-6)
        torch._foreach_mul_(gradients, factor.clamp(max=1.0).to(gradients[0].dtype))

    def step(self):
        with self.torch.no_grad():
            gradients = [self.slice(p.grad, i) for i, p in enumerate(self.parameters)]
            if self.clip:
                self.clip_gradients(gradients)
            for indices, masters, optimizer in self.groups:
                wide, begin = [], 0
                for i in indices:
                    wide.append(self.wide[begin:begin + self.counts[i]])
                    begin += self.counts[i]
                self.copy(wide, [gradients[i] for i in indices])
                for master, gradient in zip(masters, wide):
                    master.grad = gradient
                optimizer.step()
                self.copy([self.slice(self.parameters[i], i) for i in indices], masters)
        for parameter in self.parameters:
            parameter.grad = None


def grouped(counts, most):
    """Indices in order, cut before a group would exceed `most`; a larger one stands alone."""
    groups, size = [], math.inf
    for i, count in enumerate(counts):
        if size + count > most:
            groups.append([])
            size = 0
        groups[-1].append(i)
        size += count
    return groups
