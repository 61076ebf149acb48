"""Asks the real Triton, started as the product starts it, what it says of repositories.

Decides how a server's log becomes a verdict on each repository, whether one server is given one of
them or many. Must not know the corpus or the validator.

Many in one server is what makes the corpus affordable. It differs from the product in one option: a
repository that fails must not end the server. Triton judges each model by itself and those that
name it, so with models of distinct names the verdicts are those of one server each; record.py
records from the latter and the tests compare.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from amphitrite.dataplane.table.routing_table import Address
from amphitrite.dataplane.triton import backend_directory, command_line, http_api, installation
from amphitrite.dataplane.triton.command_line import Options

from ..ports import free_port

DEADLINE_S = 300.0
#: What is said of a repository in which Triton finds no model: it starts, and serves nothing.
NOTHING = "(it starts and serves no model)"

_KILLED = "(it dies) "
#: Triton waits for ever for a stub that has said this and gone.
_WAITS = re.compile(r"pb_stub.*\]  (Failed to preinitialize Python stub: .*)")
_MESSAGE = re.compile(r'^\S+ [IWE] \d+ \S+\] (".*")$')
_PARSER = re.compile(r"^\[libprotobuf ERROR [^\]]*\] (Error parsing .*)$")
_FAILED = (
    re.compile(r"Poll failed for model directory '(?P<name>.*?)': (?P<words>.*)", re.DOTALL),
    re.compile(r"failed to load model '(?P<name>.*?)': (?P<words>.*)", re.DOTALL),
    re.compile(r"failed to load '(?P<name>.*?)' version -?\d+: (?P<words>.*)", re.DOTALL),
)
#: What the repository manager says of an ensemble names it among others.
_ENSEMBLE = re.compile(r" E \d+ model_repository_manager\.cc:\d+\] ")
_LOADED = re.compile(r"successfully loaded '(.*?)'")


@dataclass(frozen=True)
class Verdict:
    """``words``: Triton's own about each model that it refuses, without the traceback and where the
    files lay."""

    loads: bool
    words: tuple[str, ...]


def alone(repository: Path) -> Verdict:
    """The verdict of a server of its own, started with the product's options: it ends where it
    refuses."""
    with _server([repository]) as (process, address, log):
        _wait(process, address, log)
        ended = process.poll() is not None
        if waits := _WAITS.search(log.read_text(errors="replace")):
            return Verdict(False, (_plain(f"(it waits for ever) {waits[1]}", [repository]),))
        words, tail = _words(log, [repository]), _tail(log)
    if ended and process.returncode < 0 and not words.refused:  # With words it dies at times while it ends.
        last = tail[tail.rfind("terminate called") :] if "terminate called" in tail else f"signal {-process.returncode}"
        return Verdict(False, (_KILLED + " ".join(last.split()),))
    loads = not ended and bool(words.loaded)
    if ended != bool(words.refused):
        raise AssertionError(f"{repository}: exit status {process.poll()}, but it says {words.refused}\n{tail}")
    return Verdict(loads, _said(words, _models(repository)))


def together(repositories: Mapping[str, Path]) -> dict[str, Verdict]:
    """Name -> verdict, of one server that is given all of them. No two may have a model of the same
    name."""
    paths = list(repositories.values())
    with _server(paths) as (process, address, log):
        _wait(process, address, log)
        assert process.poll() is None, f"{process.returncode} {_tail(log)}"
        words = _words(log, paths)
    verdicts = {}
    for name, path in repositories.items():
        models = _models(path)
        loads = bool(models) and models <= words.loaded and not models & set(words.refused)
        verdicts[name] = Verdict(loads, _said(words, models))
    return verdicts


@dataclass(frozen=True)
class _Log:
    """``refused``: model -> what is said of it; ``loaded``: models that are served."""

    refused: Mapping[str, str]
    loaded: frozenset[str]


def _said(words: _Log, models: set[str]) -> tuple[str, ...]:
    said = tuple(f"{name}: {words.refused[name]}" for name in sorted(models) if name in words.refused)
    return said or (() if models & words.loaded else (NOTHING,))


def _models(repository: Path) -> set[str]:
    return {entry.name for entry in repository.iterdir() if entry.is_dir()}


def _words(log: Path, repositories: Sequence[Path]) -> _Log:
    refused: dict[str, str] = {}
    loaded, parser, others = set(), "", []
    for line in log.read_text(errors="replace").splitlines():
        if found := _PARSER.match(line):
            parser = f"{found[1].strip()}; "
        message = _MESSAGE.match(line)
        if message is None:
            continue
        text = _unquoted(message[1])
        if found := _LOADED.match(text):
            loaded.add(found[1])
        for pattern in _FAILED:
            if found := pattern.match(text):
                refused.setdefault(found["name"], parser + _plain(found["words"], repositories))
                parser = ""
                break
        else:
            if _ENSEMBLE.search(line):
                others.append(_plain(text, repositories))
    models = {name for path in repositories for name in _models(path)} - loaded
    for text in others:
        for name in [word for word in re.findall(r"[\w.-]+", text) if word in models][:1]:
            refused.setdefault(name, text)
    return _Log(refused, frozenset(loaded))


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except json.JSONDecodeError:  # Triton leaves some characters as they are.
        return text[1:-1]


def _plain(words: str, repositories: Sequence[Path]) -> str:
    for path in repositories:
        words = words.replace(f"{path}/", "")
    words = words.split("\n\nAt:")[0]
    return re.sub(r"/\S*/(?=(onnxruntime|python)/)", "", " ".join(words.split()))


def _wait(process: subprocess.Popen[bytes], address: Address, log: Path) -> None:
    """Until it has judged all models: it listens only then, or has ended."""
    pause, end = threading.Event(), time.monotonic() + DEADLINE_S
    while (
        process.poll() is None and not http_api.live(address, 2) and not _WAITS.search(log.read_text(errors="replace"))
    ):
        assert time.monotonic() < end, f"undecided: {_undecided(log)}\n{_tail(log)}"
        pause.wait(0.02)


@contextmanager
def _server(repositories: Sequence[Path]) -> Iterator[tuple[subprocess.Popen[bytes], Address, Path]]:
    root = Path(tempfile.mkdtemp(prefix="judge-"))
    prefix = f"{root.name}."
    process = None
    try:
        found = installation.locate(os.environ)
        address = Address("127.0.0.1", free_port())
        backends = backend_directory.prepare(found, root / "backends")
        options = Options(repositories[0], backends, address, prefix)
        argv = command_line.arguments(found, options)
        if len(repositories) > 1:
            argv = ["--exit-on-error=false" if word == "--exit-on-error=true" else word for word in argv]
            argv += [f"--model-repository={path}" for path in repositories[1:]]
        variables = command_line.environment(found, os.environ, marker="judge", cores=2, gpus=False, variables={})
        log = root / "log"
        with log.open("wb") as stream:
            process = subprocess.Popen(argv, env=variables, stdout=stream, stderr=stream, cwd=root)
        yield process, address, log
    finally:
        if process is not None:
            _end(process)
        for region in Path("/dev/shm").glob(f"{prefix}*"):
            region.unlink(missing_ok=True)
        shutil.rmtree(root)


def _end(process: subprocess.Popen[bytes]) -> None:
    """At once: to unload all models in order takes longer than to judge them."""
    try:
        stubs = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        stubs = []
    process.kill()
    process.wait(30)
    for stub in stubs:
        try:
            stub.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(stubs, 30)


def _undecided(log: Path) -> list[str]:
    text = log.read_text(errors="replace")
    ended = re.findall(r"successfully loaded '(.*?)'|failed to load '(.*?)'", text)
    return sorted(set(re.findall(r'"loading: (.*):-?\d+"', text)) - {a or b for a, b in ended})


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-5000:]
