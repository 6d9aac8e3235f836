"""Where torch computes: options, threads, devices, and the way torch is loaded.

Nothing here imports torch before `start_torch` is called.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from seqtools.cli._options import POSITIVE, collect
from seqtools.errors import ConfigError

if TYPE_CHECKING:
    import torch


class DeviceType(click.ParamType[str]):
    """`cpu`, `cuda`, `cuda:N` or `auto`."""

    name = "cpu|cuda|cuda:N|auto"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """What the help shows: the name, whose case matters."""
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the form alone; whether the device is there is known when torch is loaded."""
        if re.fullmatch(r"cpu|auto|cuda(:[0-9]+)?", str(value)) is None:
            self.fail(f"{value!r} is none of cpu, cuda, cuda:N, auto", param, ctx)
        return str(value)


@dataclass(frozen=True, slots=True)
class Compute:
    """Where and how exactly to compute.

    Attributes:
        device: `cpu`, `cuda`, `cuda:N` or `auto`.
        threads: of torch on the CPU, None for as many as this process may use.
        precision: `float32` or `bf16`.
    """

    device: str = "auto"
    threads: int | None = None
    precision: str = "float32"


compute_options = collect(
    Compute,
    "compute",
    (
        click.option(
            "--device", type=DeviceType(), default="auto", show_default=True,
            help="auto takes a GPU where there is one.",
        ),
        click.option(
            "--threads", type=POSITIVE, help="CPU threads; default: as many as are ours to use."
        ),
        click.option(
            "--precision", type=click.Choice(["float32", "bf16"]), default="float32",
            show_default=True, help="bf16: faster products, less exact; weights stay float32.",
        ),
    ),
)  # fmt: skip
"""Give a command `--device`, `--threads` and `--precision`, as its argument `compute`."""


def start_torch(compute: Compute, *, tf32: bool = False, processes: int = 1) -> torch.device:
    """Load torch, set its threads, and give the device.

    OpenMP's threads wait passively: in a pipe another process always wants the core they would
    spin on, which costs most of the speed. What the user has put into the environment stays.

    Args:
        compute: the options.
        tf32: whether a GPU may round the factors of float32 products to 10 bits.
        processes: how many do this, and share the cores.

    Raises:
        ConfigError: the device is not there.
    """
    ours = max(1, available_cores() // processes)
    threads = compute.threads or _threads_asked_for() or ours
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    import gc
    import sys
    import warnings

    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what torch tells programmers is not for users
    gc.disable()  # importing makes much and frees nothing; a tenth of the time is the collector's
    import torch

    gc.enable()
    gc.freeze()
    torch.set_num_threads(threads)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    device = _find_device(compute.device)
    if device.type == "cpu":
        from seqtools.nn.runtime import quicken_cpu

        quicken_cpu()
    return device


def _find_device(name: str) -> torch.device:
    import torch

    if name == "cpu":
        return torch.device("cpu")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return torch.device("cuda" if count else "cpu")
    if not count:
        built = "" if torch.version.cuda else "; this torch is built for the CPU alone"
        raise ConfigError(f"--device {name}: there is no CUDA device{built}")
    device = torch.device(name)
    if device.index is not None and device.index >= count:
        raise ConfigError(f"--device {name}: there are {count} CUDA devices, counted from 0")
    return device


def _threads_asked_for() -> int | None:
    """What OMP_NUM_THREADS says, where it is one number."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if re.fullmatch("[1-9][0-9]{0,4}", asked) else None


def available_cores(proc: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> int:
    """How many cores this process may use: its affinity, and the quotas of its control groups."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min([cores, *(int(quota) for quota in _quotas(proc, root))]))


def _quotas(proc: str, root: str) -> Iterator[float]:
    """Processor quotas in cores, of every control group we are in, both versions."""
    for line in _read(proc).splitlines():
        _, controllers, path = line.split(":", 2)
        names: tuple[str, ...]
        if not controllers:  # version 2
            base, names = root, ("cpu.max",)
        elif "cpu" in controllers.split(","):
            base, names = f"{root}/cpu", ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        else:
            continue
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts) + 1):  # a limit holds for all groups below it
            folder = "/".join([base, *parts[:depth]])
            words = " ".join(_read(f"{folder}/{name}") for name in names).split()
            if len(words) == 2 and words[0].isdigit() and int(words[1]):  # "max", -1: no limit
                yield int(words[0]) / int(words[1])


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except OSError:
        return ""
