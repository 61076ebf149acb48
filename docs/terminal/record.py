"""Records the scenes of ``docs/terminal.md`` with a release of ``ml``, and draws them as SVG.

``python docs/terminal/record.py CHECKOUT FOLDER [SCENE ...]``: ``CHECKOUT`` has a ``.venv`` with
the release, ``FOLDER`` is below ``docs/terminal``, such as ``after``. It starts a server of its
own, with another home and other ports.

``python docs/terminal/record.py CHECKOUT FOLDER install`` records ``make install``.

Decides what is shown. Must not know how it is recorded or drawn.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import drawing
import recorder
from recorder import Command

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "single-model"


@dataclass(frozen=True, slots=True)
class Scene:
    """``name``: of the file. ``prepare``: commands that are not shown."""

    name: str
    title: str
    commands: tuple[Command, ...]
    prepare: tuple[str, ...] = ()


def scene(name: str, title: str, *lines: str, prepare: tuple[str, ...] = ()) -> Scene:
    """A scene of commands that run to their end."""
    return Scene(name, title, tuple(Command(line) for line in lines), prepare)


_CREATE = "ml online-deployment create -e pictures"
_SLOW = "ml online-deployment create -f slow.yml -e pictures -o none"

#: In the order in which they are recorded: each uses what those before it have left.
SCENES = (
    scene(
        "deletion",
        "Deleting what is not there, and a name that is misspelt",
        "ml online-endpoint delete -n picture --yes; echo exit code $?",
        'ml online-endpoint update -n pictures --traffic "blue=100 gren=0" --query traffic -o tsv; echo exit code $?',
        prepare=(
            "ml model create -f example/model.yml -o none",
            "ml online-endpoint create -n pictures -o none",
            f"{_CREATE} -f blue.yml --all-traffic -o none",
            f"{_CREATE} -f blue.yml -n green -o none",
            'ml online-endpoint update -n pictures --traffic "blue=90 green=10" -o none',
        ),
    ),
    scene(
        "cause",
        "A model that raises in initialize()",
        f"{_CREATE} -f broken.yml",
        prepare=("ml model create -n broken -p broken -t triton_model -o none",),
    ),
    scene(
        "tables",
        "Tables",
        "ml online-endpoint list -o table",
        "ml online-deployment list -e pictures -o table",
        "ml online-deployment show -n blue -e pictures -o wide",
        "ml online-deployment list -e empty -o table",
        prepare=("ml online-endpoint create -n empty -o none",),
    ),
    scene("help", "The help of a verb", "ml online-deployment create --help"),
    scene(
        "progress",
        "An upload on a terminal, and a deployment without one",
        "ml model create -n large -p large -t custom_model -o none",
        f"{_CREATE} -f slow.yml -n red -o none 2>&1 | cat",
    ),
    Scene(
        "completion",
        "Completion",
        (Command("ml online-deployment show -e pictures -n ", keys="\t\t"),),
    ),
    Scene(
        "interruption",
        "Ctrl-C, and the same command again",
        (Command(_SLOW, interrupt_after=4.0), Command(_SLOW)),
    ),
    scene(
        "disk",
        "What the disk holds",
        "ml model delete -n efficientnet-lite0 -v 1 --yes",
        "ml model delete -n large -v 1 --yes",
        "ml server df",
        "ml server prune",
        prepare=("ml online-deployment delete -n slow -e pictures --yes",),
    ),
    scene(
        "logs",
        "Logs",
        "ml online-deployment get-logs -n blue -e pictures --lines 6",
        "ml server logs --lines 4",
    ),
    scene(
        "codes",
        "An error, and what its code means",
        "ml online-endpoint show -n picture",
        "ml explain ResourceNotFound",
    ),
    scene(
        "apply",
        "Many documents, and one for the wrong command",
        "ml apply -f all",
        "ml apply -f all",
        "ml online-deployment create -f all/endpoint.yml",
        prepare=("ml online-endpoint delete -n empty --yes",),
    ),
)

#: Recorded in a copy of the checkout, by itself: it takes minutes.
INSTALL = scene("install", "make install with pip", "time make install")

_DEPLOYMENT = "name: {name}\nmodel: azureml:{model}:1\ninstance_type: Standard_DS3_v2\ninstance_count: 1\n"
_RAISES = """\
import numpy as np


class TritonPythonModel:
    def initialize(self, args):
        self.weights = self.load("weights.npy")

    def load(self, name):
        raise ValueError(f"no weights in {name}: run train.py before the model is registered")
"""
_SLEEPS = """\
import time


class TritonPythonModel:
    def initialize(self, args):
        time.sleep(8)
"""


def write_files(directory: Path) -> None:
    """The files of the user who types the commands."""
    shutil.copytree(EXAMPLE, directory / "example")
    for name, model in (("blue", "efficientnet-lite0"), ("broken", "broken"), ("slow", "slow")):
        (directory / f"{name}.yml").write_text(_DEPLOYMENT.format(name=name, model=model))
    inline = "model: {path: slow, type: triton_model}"
    (directory / "slow.yml").write_text((directory / "slow.yml").read_text().replace("model: azureml:slow:1", inline))
    for name, text in (("broken", _RAISES), ("slow", _SLEEPS)):
        (directory / name / "classifier/1").mkdir(parents=True)
        (directory / name / "classifier/1/model.py").write_text(text)
        (directory / name / "classifier/config.pbtxt").write_text('backend: "python"\n')
    (directory / "large").mkdir()
    with (directory / "large/weights.bin").open("wb") as file:
        file.truncate(400_000_000)
    (directory / "all").mkdir()
    (directory / "all/endpoint.yml").write_text("name: cats\nauth_mode: key\ntraffic: {blue: 100}\n")
    deployment = (directory / "blue.yml").read_text() + "endpoint_name: cats\n"
    (directory / "all/blue.yml").write_text(deployment)


def record_install(checkout: Path, folder: Path) -> None:
    """Record ``make install`` in a copy of the checkout, without uv."""
    with tempfile.TemporaryDirectory(prefix="terminal-") as directory:
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=checkout, capture_output=True, check=True)
        subprocess.run(["tar", "x", "-C", directory], input=archive.stdout, check=True)
        python = Path(sys.executable).resolve().parent
        environ = {"HOME": os.environ["HOME"], "PATH": f"{python}:/usr/bin:/bin", "TERM": "xterm-256color"}
        _draw(INSTALL, recorder.record(INSTALL.commands, Path(directory), environ), folder)


def _draw(one: Scene, frames: list[drawing.Frame], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    picture = drawing.svg(frames, recorder.COLUMNS, one.title)
    (folder / f"{one.name}.svg").write_text(picture)
    sys.stderr.write(f"{one.name}: {len(frames)} frames, {len(picture)} bytes\n")


def main(checkout: Path, folder: Path, names: list[str]) -> None:
    """Record the scenes ``names``, or all of ``SCENES``."""
    if names == [INSTALL.name]:
        record_install(checkout, folder)
        return
    with tempfile.TemporaryDirectory(prefix="terminal-") as temporary:
        directory = Path(temporary) / "work"
        directory.mkdir()
        write_files(directory)
        environ = {name: os.environ[name] for name in ("HOME", "LANG", "LC_ALL") if name in os.environ}
        environ |= {"ML_HOME": f"{temporary}/home", "PATH": f"{checkout}/.venv/bin:{os.environ['PATH']}"}
        environ |= {"TERM": "xterm-256color", "PYTHONWARNINGS": "ignore"}
        ports = [_free_port(), _free_port()]
        start = f"ml server start -d --port {ports[0]} --scoring-port {ports[1]}"
        subprocess.run(["bash", "-c", start], env=environ, cwd=directory, check=True)
        try:
            for one in SCENES:
                for line in one.prepare:
                    subprocess.run(["bash", "-c", line], env=environ, cwd=directory, check=False)
                frames = recorder.record(one.commands, directory, environ)
                if not names or one.name in names:
                    _draw(one, frames, folder)
        finally:
            subprocess.run(["ml", "server", "stop"], env=environ, check=False)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), HERE / sys.argv[2], sys.argv[3:])
