"""What is said twice is said the same: launchers and scripts, dependencies and their pins."""

import ast
import os
import re
import shutil
import tomllib
import venv

import pytest

from tests.cli.helpers import BIN, ROOT, run, shell

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SCRIPTS = PROJECT["project"]["scripts"]


def test_there_is_a_launcher_for_each_console_script_and_no_other():
    assert sorted(os.listdir(BIN)) == sorted(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_launchers_differ_in_the_module_alone(name):
    path = BIN / name
    assert os.access(path, os.X_OK)
    text = path.read_text()
    assert text.startswith("#!/usr/bin/env python3\n")
    module, _, function = SCRIPTS[name].partition(":")
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    assert [(node.module, [alias.name for alias in node.names]) for node in imports] == [
        (module, [function])
    ]
    first = next(iter(SCRIPTS))
    template = (BIN / first).read_text().replace(SCRIPTS[first].partition(":")[0], "MODULE")
    assert text.replace(module, "MODULE").replace(name, "NAME") == template.replace(first, "NAME")


def test_the_launchers_find_the_checkout_through_a_link(tmp_path):
    link = tmp_path / "seq-convert"
    link.symlink_to(BIN / "seq-convert")
    done = run(str(link), "text", stdin=b"a\n", cwd=tmp_path)
    assert (done.status, done.stdout) == (0, b'{"text":"a"}\n')


def test_the_launchers_use_an_environment_that_is_a_link(tmp_path):
    (tmp_path / "bin").mkdir()
    launcher = shutil.copy(BIN / "seq-convert", tmp_path / "bin")
    (tmp_path / "seqtools").symlink_to(ROOT / "seqtools")
    venv.create(tmp_path / "elsewhere", with_pip=False)
    (tmp_path / ".venv").symlink_to("elsewhere")
    script = "import sys; print(sys.prefix)"
    (tmp_path / "bin" / "click.py").write_text(f"{script}; sys.exit()")  # stands before all others
    done = run(launcher, timeout=20)
    assert (done.status, done.stdout.decode()) == (0, f"{tmp_path / '.venv'}\n")


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_has_one_exact_version_for_development():
    exact = {normal(name) for name in pins()}
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = PROJECT["project"]["dependencies"] + extras["dev"]
    names = {normal(re.match(r"[\w.-]+", line)[0]) for line in wanted}
    assert names <= exact
    assert pins()["torch"] == "2.13.0"


def test_what_is_installed_is_what_is_pinned():
    from importlib.metadata import distributions

    exact = {normal(name): version for name, version in pins().items()}
    installed = {normal(each.name): each.version for each in distributions()}
    for name, version in exact.items():
        if name in installed:  # another machine may need others
            assert installed[name].partition("+")[0] == version, name


def test_the_layers_are_under_contract():
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    [layers] = [contract for contract in contracts if contract["type"] == "layers"]
    packages = {each.name for each in (ROOT / "seqtools").iterdir() if each.is_dir()}
    modules = {each.stem for each in (ROOT / "seqtools").glob("*.py")} - {"__init__"}
    named = re.findall(r"seqtools\.(\w+)", " ".join(layers["layers"]))
    assert sorted(named) == sorted((packages | modules) - {"__pycache__"})
    # Besides: what a layer may import of those below, and click none of them.
    forbidden = {
        (source, target)
        for contract in contracts
        if contract["type"] == "forbidden"
        for source in contract["source_modules"]
        for target in contract["forbidden_modules"]
    }
    below = {f"seqtools.{name}" for name in named} - {"seqtools.cli"}
    assert {source for source, target in forbidden if target == "click"} == below
    for source, target in (
        ("nn", "text"),
        ("nn", "batching"),
        ("nn", "streams"),
        ("decoding", "text"),
        ("decoding", "batching"),
        ("decoding", "models"),
        ("evaluation", "models"),
        ("evaluation", "nn"),
        ("viz", "models"),
        ("viz", "nn"),
    ):
        assert (f"seqtools.{source}", f"seqtools.{target}") in forbidden


def test_an_installation_that_failed_is_begun_again(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\nmkdir -p .venv/bin; cp $0 .venv/bin/python\n"
        'case "$*" in *install*constraint*) echo "$@" >> asked; test -e net;; esac\n'
    )
    python.chmod(0o755)
    make = f"make --silent PYTHON={python} .venv"
    assert shell(make, cwd=tmp_path).status == 2
    assert shell(make, cwd=tmp_path).status == 2
    (tmp_path / "net").touch()
    assert shell(make, cwd=tmp_path).status == 0
    assert shell(make, cwd=tmp_path).status == 0  # there is nothing more to do
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 3
    os.utime(tmp_path / "constraints.txt")
    assert shell(make, cwd=tmp_path).status == 0
    assert len((tmp_path / "asked").read_text().splitlines()) == 4


def test_the_version_has_one_place():
    from seqtools import __version__

    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", __version__)
    assert PROJECT["project"]["dynamic"] == ["version"]
