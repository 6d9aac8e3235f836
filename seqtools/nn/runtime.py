"""How torch computes on this machine's CPU: settings of the process, for a program to choose.

Nothing in the library calls this; a command does, once, before its work.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import torch

# How many programs oneDNN keeps, and torch on top of it; 1024 by default.
_CACHES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "256", "LRU_CACHE_CAPACITY": "128"}

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3  # malloc.h of glibc


def quicken_cpu() -> None:
    """Make float32 products and large temporaries quicker, with the same precision."""
    use_onednn_products()
    keep_freed_memory()


def use_onednn_products() -> bool:
    """Have oneDNN do float32 products, if it does them in float32; say whether it does.

    torch sends them to MKL, which on processors of other makers leaves the wide vector units idle:
    oneDNN was seen to be 2.3 times as fast on one with AVX-512. torch hands products to oneDNN when
    it may compute them in bfloat16, which oneDNN makes use of only where there are units for it
    (AMX); whether it does is tried out here, and then everything is left as it was.

    oneDNN keeps a program of up to some megabytes for each shape of its factors, and batches have
    many shapes: how many are kept is limited here, unless the environment says otherwise.
    """
    for name, capacity in _CACHES.items():  # read with the first product
        os.environ.setdefault(name, capacity)
    settings: Any = getattr(getattr(torch.backends, "mkldnn", None), "matmul", None)
    before = getattr(settings, "fp32_precision", None)  # since torch 2.9
    if before is None:
        return False
    settings.fp32_precision = "bf16"
    exact = all(_is_exact(*sizes) for sizes in ((8, 64, 64), (64, 256, 256)))
    if not exact:
        settings.fp32_precision = before
    return exact


def _is_exact(rows: int, inner: int, columns: int) -> bool:
    """Whether a product keeps more digits of its factors than bfloat16 has (8 of 24 bits)."""
    factor = torch.full((rows, inner), 1.0 + 2.0**-12)
    product = factor @ torch.ones(inner, columns)
    batched = torch.bmm(factor.expand(2, rows, inner), torch.ones(2, inner, 4))
    expected = inner * (1.0 + 2.0**-12)  # a float32 has enough bits for it
    return bool((product == expected).all() and (batched == expected).all())


def keep_freed_memory() -> bool:
    """Have malloc keep what is freed, up to blocks of 32 MiB; say whether it can be told so.

    By default glibc gets each large tensor from the kernel and gives it back when it is freed, and
    a training step makes the same tensors as the one before: the kernel clearing their pages took
    up to a half of the time.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # not glibc
        return False
    settings = (_M_MMAP_THRESHOLD, 32 << 20), (_M_TRIM_THRESHOLD, 1 << 30), (_M_TOP_PAD, 64 << 20)
    return all(mallopt(name, value) for name, value in settings)
