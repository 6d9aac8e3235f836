import os

import click
import pytest

from seqtools.cli._device import Compute, DeviceType, available_cores, start_torch
from seqtools.errors import ConfigError


@pytest.fixture(autouse=True)
def _settings(monkeypatch):
    """What is set here goes away again."""
    import torch

    threads = torch.get_num_threads()
    for name in (
        "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS", "ONEDNN_PRIMITIVE_CACHE_CAPACITY",
        "LRU_CACHE_CAPACITY",
    ):  # fmt: skip
        monkeypatch.setenv(name, "1")
        monkeypatch.delenv(name)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Eight cores by affinity, and a function that writes control groups."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)

    def make(lines, **files):
        proc = tmp_path / "cgroup"
        proc.write_text("".join(f"{line}\n" for line in lines))
        for name, text in files.items():
            path = tmp_path / "fs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return available_cores(str(proc), str(tmp_path / "fs"))

    return make


def test_no_limit(groups):
    assert groups([]) == 8
    assert groups(["0::/a"], **{"a/cpu.max": "max 100000\n"}) == 8


def test_version_2(groups):
    assert groups(["0::/a/b"], **{"a/b/cpu.max": "300000 100000\n"}) == 3


def test_the_limit_of_a_group_above_holds(groups):
    files = {"a/cpu.max": "250000 100000\n", "a/b/cpu.max": "max 100000\n"}
    assert groups(["0::/a/b"], **files) == 2


def test_version_1(groups):
    files = {"cpu/a/cpu.cfs_quota_us": "400000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}
    assert groups(["3:cpu,cpuacct:/a", "2:memory:/a"], **files) == 4
    files = {"cpu/a/cpu.cfs_quota_us": "-1\n", "cpu/a/cpu.cfs_period_us": "100000\n"}
    assert groups(["3:cpu,cpuacct:/a"], **files) == 8


def test_less_than_a_core_is_one_thread(groups):
    assert groups(["0::/"], **{"cpu.max": "50000 100000\n"}) == 1


def test_no_control_groups(tmp_path):
    assert available_cores(str(tmp_path / "none"), str(tmp_path)) >= 1


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:3", "auto"])
def test_device_names(name):
    assert DeviceType().convert(name, None, None) == name


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cpu:1", ""])
def test_other_names_are_refused(name):
    with pytest.raises(click.BadParameter, match="none of cpu, cuda, cuda:N, auto"):
        DeviceType().convert(name, None, None)


def test_an_absent_device_is_an_error(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    threads = torch.get_num_threads()
    with pytest.raises(ConfigError, match="--device cuda: there is no CUDA device"):
        start_torch(Compute(device="cuda", threads=1))
    assert start_torch(Compute(device="auto", threads=threads)).type == "cpu"


def test_a_device_past_the_last_is_an_error(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ConfigError, match="--device cuda:2: there are 2 CUDA devices"):
        start_torch(Compute(device="cuda:2", threads=1))
    assert start_torch(Compute(device="cuda:1", threads=1)).index == 1


def test_threads_wait_passively_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    start_torch(Compute(device="cpu", threads=1))
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    assert os.environ["GOMP_SPINCOUNT"] == "0"


def test_memory_for_programs_is_limited_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "1000")
    start_torch(Compute(device="cpu", threads=1))
    assert os.environ["LRU_CACHE_CAPACITY"] == "1000"
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "256"


def test_threads_from_the_environment(monkeypatch):
    import torch

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    start_torch(Compute(device="cpu"))
    assert torch.get_num_threads() == 1
    start_torch(Compute(device="cpu", threads=2))
    assert torch.get_num_threads() == 2
