# SPDX-License-Identifier: Apache-2.0
"""A stand-in for PyTorch that knows shapes and types of tensors but no values.

What the decoder of the campaign calls is there, and checks what PyTorch would refuse. A backward
pass calls that of every autograd function since the last one, and gives each leaf a gradient.
"""

import contextlib
import math
import types

bfloat16, float32, int64, float8 = "bfloat16", "float32", "int64", "float8"
RANK = {int64: 0, float8: 0, bfloat16: 1, float32: 2}
BYTES = {int64: 8, bfloat16: 2, float32: 4, float8: 1}


class Tensor:
    def __init__(self, shape, dtype=float32):
        self.shape, self.dtype = tuple(shape), dtype
        self.grad, self.device = None, "shapes"
        assert all(isinstance(size, int) and size >= 0 for size in self.shape), shape

    @property
    def nbytes(self):
        return self.numel() * BYTES[self.dtype]

    def t(self):
        return self.transpose(0, 1)

    def copy_(self, other):
        assert (self.shape, self.dtype) == (other.shape, other.dtype)
        return self

    def same(self, shape=None, dtype=None):
        return Tensor(self.shape if shape is None else shape, dtype or self.dtype)

    def numel(self):
        return math.prod(self.shape)

    def view(self, *shape):
        shape = list(shape)
        if -1 in shape:
            at = shape.index(-1)
            shape[at] = self.numel() // math.prod(size for size in shape if size != -1)
        assert math.prod(shape) == self.numel(), (self.shape, shape)
        return self.same(shape)

    reshape = view

    def transpose(self, a, b):
        shape = list(self.shape)
        shape[a], shape[b] = shape[b], shape[a]
        return self.same(shape)

    def split(self, sizes, dim):
        assert sum(sizes) == self.shape[dim] and dim == -1, (self.shape, sizes)
        return [self.same((*self.shape[:-1], size)) for size in sizes]

    def chunk(self, count, dim):
        return self.split([self.shape[dim] // count] * count, dim)

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        shape = []
        for size, part in zip(self.shape, key):
            if isinstance(part, slice):
                shape.append(len(range(size)[part]))
            else:
                assert 0 <= part < size, (self.shape, key)
        return self.same((*shape, *self.shape[len(key):]))

    def combined(self, other):
        if not isinstance(other, Tensor):
            return self.same()
        a, b = self.shape, other.shape
        a, b = (1,) * (len(b) - len(a)) + a, (1,) * (len(a) - len(b)) + b
        assert all(x == y or 1 in (x, y) for x, y in zip(a, b)), (self.shape, other.shape)
        return Tensor(map(max, a, b), max(self.dtype, other.dtype, key=RANK.get))

    __add__ = __mul__ = __truediv__ = __radd__ = __rmul__ = __rtruediv__ = combined
    __rpow__ = combined

    def __neg__(self):
        return self.same()

    def mean(self):
        return self.same(())

    def float(self):
        return self.same(dtype=float32)

    def to(self, dtype):
        return self.same(dtype=dtype)

    def clamp(self, max):
        return self.same()

    cos = sin = detach = clone = __neg__

    def normal_(self, mean, deviation, generator):
        return self

    def fill_(self, value):
        return self

    def requires_grad_(self, wanted):
        leaves.append(self)
        return self

    def item(self):
        assert self.shape == ()
        return 1.0

    def backward(self, gradient=None):
        assert self.shape == () if gradient is None else self.shape == gradient.shape
        while tape:
            function, context, inputs, out = tape.pop()
            found = function.backward(context, out.same())
            for one, its in zip(inputs, found, strict=True):
                if its is not None:
                    assert (one.shape, one.dtype) == (its.shape, its.dtype)
            backwards.append(function.__name__)
        for leaf in leaves:
            leaf.grad = leaf.same()


leaves, tape, backwards, updates = [], [], [], []


class Function:
    @classmethod
    def apply(cls, *inputs):
        context = types.SimpleNamespace()
        context.save_for_backward = lambda *saved: setattr(context, "saved_tensors", saved)
        out = cls.forward(context, *inputs)
        tape.append((cls, context, inputs, out))
        return out


def linear(x, weight, bias=None):
    assert x.shape[-1] == weight.shape[1] and x.dtype == weight.dtype, (x.shape, weight.shape)
    assert bias is None or bias.shape == weight.shape[:1]
    return x.same((*x.shape[:-1], weight.shape[0]))


def norm(x, shape, weight, *rest):
    assert x.shape[-1:] == shape == weight.shape
    return x.same()


def mm(a, b, out):
    assert a.shape[1] == b.shape[0] and a.dtype == b.dtype, (a.shape, b.shape)
    assert out.shape == (a.shape[0], b.shape[1]), (a.shape, b.shape, out.shape)


def scaled_mm(a, b, scale_a, scale_b, out_dtype, use_fast_accum):
    assert a.shape[1] == b.shape[0] and a.dtype == b.dtype == float8, (a.shape, b.shape)
    assert scale_a.shape == scale_b.shape == () and out_dtype == bfloat16 and use_fast_accum
    return Tensor((a.shape[0], b.shape[1]), out_dtype)


def add(a, b, out):
    assert a.shape == b.shape == out.shape
    return out


def gradients(out, inputs, gradient, retain_graph):
    assert out.shape == gradient.shape and out.dtype == gradient.dtype
    return [one.same() for one in inputs]


def choices_of_attention():
    """Makes a module that chooses a backend; its `chosen` is the one that is used now."""
    @contextlib.contextmanager
    def sdpa_kernel(backend):
        before, module.chosen = module.chosen, backend
        yield
        module.chosen = before

    module = types.SimpleNamespace(
        chosen=None, sdpa_kernel=sdpa_kernel,
        SDPBackend=types.SimpleNamespace(CUDNN_ATTENTION="cudnn", FLASH_ATTENTION="flash"))
    return module


def attend(query, key, value, is_causal, dropout_p=0.0, enable_gqa=False):
    assert key.shape == value.shape and query.dtype == key.dtype == value.dtype == bfloat16
    assert query.shape[0::2] == key.shape[0::2] and query.shape[3] == key.shape[3]
    heads, kv_heads = query.shape[1], key.shape[1]
    assert heads % kv_heads == 0 if enable_gqa else heads == kv_heads
    return query.same()


def cross_entropy(logits, targets):
    assert logits.shape[:1] == targets.shape and logits.dtype == float32
    return logits.same(())


def embedding(tokens, table):
    assert tokens.dtype == int64
    return table.same((*tokens.shape, table.shape[1]))


class AdamW:
    def __init__(self, weights, fused, **rest):
        self.weights = weights

    def step(self):
        for weight in self.weights:
            assert weight.dtype == weight.grad.dtype == float32
            assert weight.shape == weight.grad.shape
            updates.append(weight.numel())


def foreach_copy(targets, sources):
    assert [one.shape for one in targets] == [one.shape for one in sources]


def joined(tensors, dim=-1):
    return tensors[0].same((*tensors[0].shape[:-1], sum(one.shape[-1] for one in tensors)))


def module():
    for kept in (leaves, tape, backwards, updates):
        kept.clear()
    torch = types.ModuleType("torch")
    torch.__version__ = "2.5.1"
    torch.bfloat16, torch.float32 = bfloat16, float32
    torch.compile = lambda function, dynamic: function
    torch.Generator = lambda device: types.SimpleNamespace(manual_seed=lambda seed: None)
    torch.empty = lambda *shape, device, dtype: Tensor(shape, dtype)
    torch.randint = lambda most, shape, device, generator: Tensor(shape, int64)
    torch.arange = lambda count, device, dtype: Tensor((count,), dtype)
    torch.outer = lambda a, b: a.same((*a.shape, *b.shape))
    torch.cat, torch.no_grad = joined, contextlib.nullcontext
    torch.stack = lambda tensors: tensors[0].same((len(tensors), *tensors[0].shape))
    torch.linalg = types.SimpleNamespace(vector_norm=lambda x: x.same(()))
    torch._foreach_norm = lambda tensors: [one.same(()) for one in tensors]
    torch._foreach_mul_ = lambda tensors, factor: None
    torch._foreach_copy_ = foreach_copy
    torch.optim = types.SimpleNamespace(AdamW=AdamW)
    torch.autograd = types.SimpleNamespace(Function=Function, grad=gradients)
    torch.randn = lambda *shape, device, dtype: Tensor(shape, dtype)
    torch.mm, torch.add, torch._scaled_mm = mm, add, scaled_mm
    torch.float8_e4m3fn = float8
    torch.ones = lambda shape, device: Tensor(shape, float32)
    torch.nn = types.SimpleNamespace(attention=choices_of_attention(), Parameter=Tensor.detach,
                                     functional=types.SimpleNamespace(
        linear=linear, layer_norm=norm, rms_norm=norm, scaled_dot_product_attention=attend,
        cross_entropy=cross_entropy, embedding=embedding, dropout=lambda x, p, training: x,
        silu=lambda x: x, gelu=lambda x, approximate: x))
    torch.cuda = cuda()
    return torch


def cuda(milliseconds=2.0):
    """Every span between two events takes so long."""
    def event(enable_timing):
        return types.SimpleNamespace(record=lambda: None, synchronize=lambda: None,
                                     elapsed_time=lambda end: milliseconds)

    def entered(what):
        return contextlib.nullcontext(what)

    return types.SimpleNamespace(
        Event=event, synchronize=lambda: None, is_available=lambda: True,
        get_device_name=lambda: "a card", empty_cache=lambda: None,
        get_device_properties=lambda device: types.SimpleNamespace(L2_cache_size=50 << 20),
        reset_peak_memory_stats=lambda: None, max_memory_allocated=lambda: 123,
        mem_get_info=lambda: (1000, 1500), CUDAGraph=lambda: types.SimpleNamespace(
            replay=lambda: None), graph=entered, stream=entered,
        Stream=lambda: types.SimpleNamespace(synchronize=lambda: None))
