"""Golden cases: folders `tests/cases/<command>/<case>/` with what a command line must give.

`cmd` is one line of bash, run in a copy of the folder. `expected` is its standard output, `stderr`
(none: empty) its standard error, `status` (none: 0) its exit status. Set SEQTOOLS_REWRITE_CASES=1
to write what came out into the folders, and read the difference before it is committed.
"""

import os
import pathlib
import shutil

import pytest

from tests.cli.helpers import ROOT, shell

CASES = ROOT / "tests" / "cases"
FOLDERS = sorted(path.parent for path in CASES.glob("*/*/cmd"))


@pytest.mark.parametrize("case", FOLDERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_case(case: pathlib.Path, tmp_path: pathlib.Path) -> None:
    work = tmp_path / "case"
    shutil.copytree(case, work)
    done = shell(work.joinpath("cmd").read_text().strip(), cwd=work)
    if os.environ.get("SEQTOOLS_REWRITE_CASES"):
        _write(case / "expected", done.stdout)
        _write(case / "stderr", done.stderr.encode())
        _write(case / "status", f"{done.status}\n".encode() if done.status else b"")
    assert done.stderr == _read(case / "stderr").decode()
    assert done.stdout == _read(case / "expected")
    assert done.status == int(_read(case / "status") or b"0")


def _read(path: pathlib.Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _write(path: pathlib.Path, data: bytes) -> None:
    if data:
        path.write_bytes(data)
    else:
        path.unlink(missing_ok=True)
