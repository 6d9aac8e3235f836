import subprocess
import sys

import pytest

# In a process of its own: these are settings of the process.
_PROGRAM = """
import torch
from seqtools.nn.runtime import keep_freed_memory, quicken_cpu, use_onednn_products
before = torch.get_rng_state()
quicken_cpu()
print(keep_freed_memory(), use_onednn_products())
generator = torch.Generator().manual_seed(1)
a, b = (torch.randn(300, 300, generator=generator) for _ in range(2))
print(float((a @ b - (a.double() @ b.double())).abs().max()))
assert torch.equal(before, torch.get_rng_state())
"""


def test_products_stay_float32():
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )
    _, error = done.stdout.splitlines()
    assert float(error) < 1e-3  # bfloat16 factors would be off by 0.1


def test_inexact_products_are_noticed(monkeypatch):
    import torch

    from seqtools.nn import runtime

    settings = getattr(torch.backends.mkldnn, "matmul", None)
    if getattr(settings, "fp32_precision", None) is None:
        pytest.skip("this torch has no choice of products")
    monkeypatch.setattr(runtime, "_is_exact", lambda *sizes: False)
    before = settings.fp32_precision
    assert not runtime.use_onednn_products()
    assert settings.fp32_precision == before
