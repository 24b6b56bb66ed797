# SPDX-License-Identifier: Apache-2.0
"""Where an exercise is run: a copy of its folder with the solution in place and compiled, and what its check needs to talk to it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "mininet" / "tests"))

from cli_session import Session  # noqa: E402

COMPILER = "p4c-bm2-ss"
COMPILE_TIMEOUT_S = 120
WAIT_S = 40.0
END_S = 10.0

PROTOCOL_MODULE = """\
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_file = descriptor_pb2.FileDescriptorProto(name="p4/tmp/p4config.proto", package="p4.tmp", syntax="proto3")
_message = _file.message_type.add(name="P4DeviceConfig")
_message.field.add(name="reassign", number=1, type=8, label=1)
_message.field.add(name="device_data", number=3, type=12, label=1)
_pool = descriptor_pool.Default()
_pool.Add(_file) if hasattr(_pool, "Add") else _pool.AddSerializedFile(_file.SerializeToString())
_descriptor = _pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig")
_class_of = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(_pool).GetPrototype
P4DeviceConfig = _class_of(_descriptor)
"""
"""`p4.tmp.p4config_pb2`, which the tutorials' library imports: part of the PI project, and of no package."""
OUR_MODULES = {
    "p4/__init__.py": "",
    **{f"p4/{folder}/__init__.py": "" for folder in ("v1", "config", "config/v1")},
    **{
        f"p4/{module}.py": f"from finsy.proto.p4.{module.replace('/', '.')} import *\n"
        for module in (
            "v1/p4runtime_pb2",
            "v1/p4runtime_pb2_grpc",
            "v1/p4data_pb2",
            "config/v1/p4info_pb2",
            "config/v1/p4types_pb2",
        )
    },
    "p4runtime_sh/__init__.py": "",
    "p4runtime_sh/p4runtime.py": "class P4RuntimeWriteException(Exception):\n    'What flowcache names of p4runtime-shell, which raises it.'\n",
}
"""What the tutorials' programs import besides, by file, for our own Python: finsy has P4Runtime's modules under names of its own."""
SITE = """\
try:
    import p4
    p4.__path__.append(__file__.rpartition("/")[0] + "/p4")
except ImportError:
    pass
"""


class CheckFailedError(Exception):
    """An exercise does not do what its README says; the text says what it did."""


@dataclass(frozen=True)
class Tree:
    """A copy of p4lang/tutorials in a temporary folder."""

    folder: Path
    python: str
    """A Python that has what the tutorials' controllers and PTF tests import."""

    @classmethod
    def copy(cls, source: Path, guide: Path | None, into: Path, python: str) -> Tree:
        """Copy what the exercises need of a tree, and of p4-guide's where one is named. An empty `python` is our own."""
        if guide is not None:
            for name in ("demo1", "demo1-bitselect-key", "demo2", "demo7", "ptf-tests", "testlib"):
                shutil.copytree(guide / name, into / "p4-guide" / name)
        for name in ("exercises", "utils"):
            shutil.copytree(
                source / name, into / name, ignore=shutil.ignore_patterns("*.png", "*.pdf", "build", "logs")
            )
        module = into / "site" / "p4" / "tmp"
        module.mkdir(parents=True)
        (module / "__init__.py").touch()
        (module / "p4config_pb2.py").write_text(PROTOCOL_MODULE)
        (into / "site" / "sitecustomize.py").write_text(SITE)
        for name, text in ({} if python else OUR_MODULES).items():
            (into / "site" / name).parent.mkdir(parents=True, exist_ok=True)
            (into / "site" / name).write_text(text)
        return cls(into, python or sys.executable)

    @property
    def environment(self) -> dict[str, str]:
        """For the tutorials' own programs."""
        return {**os.environ, "PYTHONPATH": str(self.folder / "site"), "PYTHONUNBUFFERED": "1"}

    def place(self, name: str) -> Place:
        """An exercise with its solution, compiled. Raises CheckFailedError with the compiler's words."""
        folder = self.folder / "exercises" / name
        for file in (folder / "solution").iterdir():
            if file.is_file():
                there = [found for found in folder.rglob(file.name) if found.parent.name != "solution"]
                for place in there or [folder / file.name]:
                    shutil.copyfile(file, place)
                    shutil.copymode(file, place)
        for made in ("build", "logs"):
            (folder / made).mkdir(exist_ok=True)
        place = Place(self, folder)
        for program in sorted(folder.glob("*.p4")):
            place.compile(program.name, f"build/{program.stem}.p4.p4info.txtpb", f"build/{program.stem}.json")
        return place


@dataclass(frozen=True)
class Place:
    """An exercise's folder."""

    tree: Tree
    folder: Path

    def compile(self, program: str, p4info: str, config: str) -> None:
        """Raises CheckFailedError with the compiler's words."""
        command = [COMPILER, "--p4v", "16", "--p4runtime-files", p4info, "-o", config, program]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S)
        if done.returncode != 0:
            raise CheckFailedError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")

    @contextlib.contextmanager
    def network(self, topology: str = "topology.json", *arguments: str) -> Generator[Session]:
        """Its topology, as `make run` starts it. Raises CheckFailedError when it does not start, or leaves by an error."""
        words = ["--topology", str(self.folder / topology), "--folder", str(self.folder), *arguments]
        try:
            session = Session(*words, environment={"PYTHONUNBUFFERED": "1"})
            try:
                yield session
                code = session.leave()
            finally:
                session.end()
        except AssertionError as error:
            raise CheckFailedError(str(error)) from None
        if code != 0:
            raise CheckFailedError(f"the launcher ended with exit code {code}")

    @contextlib.contextmanager
    def controller(self) -> Generator[Log]:
        """Its `mycontroller.py`, as a user starts it in a second terminal; ended by Ctrl-C. Raises CheckFailedError when it ends before."""
        log = self.log("mycontroller.log")
        with log.path.open("wb") as output:
            process = subprocess.Popen(
                [self.tree.python, "mycontroller.py"],
                cwd=self.folder,
                env=self.tree.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield log
            if process.poll() is not None:
                raise CheckFailedError(f"mycontroller.py ended: {log.tail()}")
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=END_S)
            except subprocess.TimeoutExpired:  # threads of the tutorials' library that wait for ever
                process.kill()
                process.wait(timeout=END_S)

    def log(self, name: str) -> Log:
        """The output of a program in this folder."""
        return Log(self.folder / name)

    def listen(self, session: Session, host: str) -> Log:
        """Start `./receive.py` on a host; it listens when this returns."""
        log = self.log(f"{host}.log")
        session.do(f"{host} ./receive.py > {log.path.name} 2>&1 &")
        log.wait_for("sniffing on eth0")
        return log


@dataclass(frozen=True)
class Log:
    """What a program has said so far."""

    path: Path

    def text(self) -> str:
        return self.path.read_text(errors="replace") if self.path.exists() else ""

    def tail(self) -> str:
        return self.text().strip()[-500:] or "it said nothing"

    def wait_for(self, *parts: str, meanwhile: Callable[[], object] = lambda: None, timeout_s: float = WAIT_S) -> str:
        """The whole text once all parts are in it; `meanwhile` is done again and again. Raises CheckFailedError."""
        deadline = time.monotonic() + timeout_s
        while True:
            text = self.text()
            missing = [part for part in parts if part not in text]
            if not missing:
                return text
            if time.monotonic() > deadline:
                raise CheckFailedError(f"{self.path.name} has no {missing[0]!r} after {timeout_s:g} s: {self.tail()}")
            meanwhile()
            time.sleep(0.5)


def expect(holds: object, what: str) -> None:
    """Raise CheckFailedError with `what` where something does not hold."""
    if not holds:
        raise CheckFailedError(what)
