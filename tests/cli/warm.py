"""Commands that load much, forked from a process that has loaded it already.

Most of the time of a short `seq-train` goes into loading torch. Here a server loads it once and
forks for each command: a process of its own, on the descriptors, in the folder and with the
environment, limits and arguments it was given, which runs `main` as the launcher does. What is
loaded when, and how a command answers signals, is tested with commands that start cold.

This file is the server, `warm.py FOLDER PROGRAM=MODULE...`, and what it puts into FOLDER under the
name of each program is the client: to a shell, that program.
"""

import contextlib
import fcntl
import importlib
import json
import os
import pathlib
import pkgutil
import resource
import signal
import socket
import sys

_LIMITS = ("RLIMIT_FSIZE", "RLIMIT_AS", "RLIMIT_NOFILE", "RLIMIT_CPU")
_CLIENT = """\
#!{python} -ISs
import json, os, resource, socket, sys
mask = os.umask(0)
limits = {{name: resource.getrlimit(getattr(resource, name)) for name in {limits!r}}}
def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    open_now = [number for number in range(256) if number != server.fileno() and is_open(number)]
    asked = [sys.argv[1:], open_now, os.getcwd(), dict(os.environ), mask, limits]
    socket.send_fds(server, [{name!r}.encode()], open_now)
    server.sendall(json.dumps(asked).encode("utf-8", "surrogateescape") + b"\\n")
    status = int(server.makefile().readline() or 1)
if status < 0:
    import signal
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


def main(folder: str, programs: dict[str, str], launchers: str) -> None:
    """Serve until standard input ends."""
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
    modules = {name: importlib.import_module(module) for name, module in programs.items()}
    for found in pkgutil.walk_packages(importlib.import_module("seqtools").__path__, "seqtools."):
        importlib.import_module(found.name)
    _load_compiled(modules["seq-ngram"].cli, pathlib.Path(folder))
    mains = {name: module.main for name, module in modules.items()}
    address = os.path.join(folder, "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        for name in programs:
            client = pathlib.Path(folder, name)
            given = {"python": sys.executable, "address": address, "limits": _LIMITS}
            client.write_text(_CLIENT.format(name=name, **given))
            client.chmod(0o755)
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        _watch_stdin()
        while True:
            asking, _ = server.accept()
            if os.fork():
                asking.close()
                continue
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _serve(asking, mains, launchers)
            os._exit(0)


def _load_compiled(ngram, folder: pathlib.Path) -> None:
    """Run what numba has compiled, which it loads when it is first called."""
    names = ("tokens", "out", "model.arpa", "model.safetensors")
    tokens, out, *models = (str(folder / name) for name in names)
    pathlib.Path(tokens).write_text('{"tokens":["a","b","a","c"]}\n' * 3)
    lines = [[kind, "--order", "2", "-o", out] for kind in ("extract", "count")]
    for model in models:
        lines.append(["train", "--order", "2", "--discount-fallback", "-o", model])
        lines.append(["score", "--model", model, "-o", out])
    for line in lines:
        ngram.main([*line, "--quiet", tokens], prog_name="seq-ngram", standalone_mode=False)


def _watch_stdin() -> None:
    """End with the process that started us, even when it is killed."""
    parent = os.getpid()
    if os.fork() == 0:
        os.read(0, 1)
        with contextlib.suppress(ProcessLookupError):
            os.kill(parent, signal.SIGKILL)
        os._exit(0)


def _serve(asking: socket.socket, mains, launchers: str) -> None:
    """Fork once more, so that the command's status is known, and tell it to the client."""
    name, descriptors, *_ = socket.recv_fds(asking, 100, 256)
    arguments, *surroundings = json.loads(
        asking.makefile(encoding="utf-8", errors="surrogateescape").readline()
    )
    child = os.fork()
    if not child:
        asking.close()
        _become(descriptors, *surroundings)
        sys.argv[:] = [os.path.join(launchers, name.decode()), *arguments]
        _run(mains[name.decode()])
    for descriptor in descriptors:
        os.close(descriptor)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(BrokenPipeError):
        asking.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(
    descriptors: list[int],
    numbers: list[int],
    folder: str,
    environment: dict[str, str],
    mask: int,
    limits: dict[str, tuple[int, int]],
) -> None:
    aside = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 256) for descriptor in descriptors]
    os.closerange(0, 256)
    for descriptor, number in zip(aside, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.umask(mask)
    for name, limit in limits.items():
        resource.setrlimit(getattr(resource, name), limit)


def _run(run) -> None:
    status: object = 1
    try:
        run()
    except SystemExit as end:
        status = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    _, where, found, *pairs = sys.argv
    sys.path.insert(0, os.path.dirname(found))
    main(where, dict(pair.split("=") for pair in pairs), found)
