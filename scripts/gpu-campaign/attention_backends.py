# SPDX-License-Identifier: Apache-2.0
"""PyTorch's scaled_dot_product_attention by one of its backends and no other."""

import contextlib

NAMES = ("cudnn", "flash")
MEMBERS = {"cudnn": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION"}


@contextlib.contextmanager
def only(torch, name):
    """Raises RuntimeError where this PyTorch has no such backend; a shape may yet be refused."""
    module = getattr(torch.nn, "attention", None)
    backend = getattr(getattr(module, "SDPBackend", None), MEMBERS[name], None)
    if backend is None:
        raise RuntimeError(f"PyTorch {torch.__version__} does not choose attention by {name}")
    with module.sdpa_kernel(backend):
        yield
