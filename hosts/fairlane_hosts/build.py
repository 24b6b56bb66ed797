# SPDX-License-Identifier: Apache-2.0
"""Compiles the BPF objects into `hosts/build/`, only what changed: `fairlane hosts build`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fairlane_controller.documents import read_json, write_json

from .errors import HostsError
from .programs import PROGRAMS
from .variants import Variant, bpf_variants

ROOT = Path(__file__).resolve().parents[1]
SENDER_SOURCE = "sender.bpf.c"
"""One file for all senders (`Variant.definitions`)."""
BUILD_TIMEOUT_S = 120
MEND = "make setup" if (ROOT.parent / "Makefile").exists() else "fairlane setup install"
"""The command that compiles all: of a clone, of an installed wheel."""
PACKAGES = "apt install clang libbpf-dev linux-libc-dev"
SIMULATED_SENDER = ROOT.parent / "switch" / "crates" / "tcp" / "src" / "cc" / "sender.c"
"""What the simulator compiles for each sender."""
_WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")
_LIBRARY_FLAGS = ("-shared", "-fPIC", "-O2", *_WARNINGS, "-Wl,-Bsymbolic", "-DCC_LIBRARY")
_BPF_FLAGS = ("-target", "bpf", "-g", "-O2", "-mcpu=v3", *_WARNINGS)


def build_dir() -> Path:
    """Where the compiled objects are: `$FAIRLANE_HOSTS_BUILD`, or `build/` beside the package."""
    return Path(os.environ.get("FAIRLANE_HOSTS_BUILD") or ROOT / "build")


def _clang() -> str:
    for candidate in (os.environ.get("CLANG") or "clang", *(f"clang-{version}" for version in range(22, 11, -1))):
        found = shutil.which(candidate)
        if found:
            return found
    raise HostsError("not-built", "no clang on the PATH (nor in $CLANG)", PACKAGES)


def _compile(flags: Sequence[str], source: str, output: Path, what: str) -> None:
    """Compile `source` to `output`, which is there whole or not at all. Raises HostsError `not-built`."""
    with tempfile.TemporaryDirectory(dir=output.parent) as scratch:
        partial = Path(scratch) / output.name
        command = [_clang(), *flags, source, "-o", str(partial)]
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise HostsError("not-built", f"{what} took longer than {BUILD_TIMEOUT_S} s") from error
        if done.returncode:
            missing = PACKAGES if "file not found" in done.stderr or "No such file" in done.stderr else ""
            raise HostsError("not-built", f"cannot compile {what}:\n{done.stderr.strip()}", missing)
        partial.replace(output)


def _digest(paths: list[Path], extra: str) -> str:
    digest = hashlib.sha256(extra.encode())
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _headers() -> list[Path]:
    return sorted(path for folder in ("bpf", "bpf/programs", "cc") for path in (ROOT / folder).glob("*.h"))


def tag_of(source: str, name: str, defines: Mapping[str, str | int], own: Path | None = None) -> str:
    """What tells one build of a program from another: a hash of its sources, name, parameters and flags.

    `own` is the folder of a sender of the user's own.
    """
    headers = [*_headers(), *(sorted(own.glob("*.h")) if own else [])]
    return _digest([ROOT / "bpf" / source, *headers], json.dumps([name, dict(defines), _BPF_FLAGS]))


def compile_bpf(source: str, name: str, defines: Mapping[str, str | int], output: Path) -> None:
    """Compile `bpf/<source>` to `output` as the congestion control `name`. Raises HostsError `not-built`."""
    triplet = sysconfig.get_config_var("MULTIARCH")  # where Debian has asm/types.h
    arguments = [f"-D{key}={value}" for key, value in {"FL_NAME": name, **defines}.items()]
    include = ["-Icc", *([f"-I/usr/include/{triplet}"] if triplet else [])]
    _compile([*_BPF_FLAGS, *include, *arguments, "-c"], f"bpf/{source}", output, f"bpf/{source}")


def read_tags() -> dict[str, str]:
    """Tag by file name of what is built; empty when nothing is."""
    loaded = read_json(build_dir() / "manifest.json")
    return loaded if isinstance(loaded, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def tag_of_built(file: str) -> str:
    """Tag of an object that is built. Raises HostsError `not-built`."""
    tag = read_tags().get(file)
    if tag is None:
        raise HostsError("not-built", f"{file} is not built", MEND)
    return tag


def sender_library(variant: Variant) -> Path:
    """A sender of the user's own as the simulator loads it, compiled where it changed. Raises HostsError `not-built`."""
    folder = variant.folder
    assert folder is not None
    tag = _digest(
        [SIMULATED_SENDER, *_headers(), *sorted(folder.glob("*.h"))], json.dumps([variant.header, _LIBRARY_FLAGS])
    )
    library = build_dir() / "senders" / f"{variant.header}-{tag}.so"
    if not library.is_file():
        library.parent.mkdir(parents=True, exist_ok=True)
        name = variant.header
        defines = (f"-DCC_NAME={name}", f'-DCC_HEADER="{variant.header_file}"', f"-DCC_SENDER_{name}")
        flags = [*_LIBRARY_FLAGS, f"-I{ROOT / 'cc'}", *defines]
        _compile(flags, str(SIMULATED_SENDER), library, variant.header_file)
    return library


def _objects() -> Iterator[tuple[str, str, Mapping[str, str | int], str, Path | None]]:
    """Source, name, parameters, file and own folder of all that is compiled."""
    for variant in bpf_variants():
        assert variant.object_name is not None
        yield SENDER_SOURCE, variant.congestion_control, variant.definitions, variant.object_name, variant.folder
    for program in PROGRAMS.values():
        yield f"programs/{program.source}", program.name, {}, program.object_name, None


def build_all(force: bool = False, *, own_only: bool = False) -> list[str]:
    """Compile what is missing or stale; returns the file names that were made. Raises HostsError `not-built`.

    With `own_only` only senders of the user's own, which no set-up has compiled.
    """
    directory = build_dir()
    directory.mkdir(parents=True, exist_ok=True)
    tags, made = read_tags(), list[str]()
    for source, name, defines, file, folder in _objects():
        if own_only and folder is None:
            continue
        tag = tag_of(source, name, defines, folder)
        if force or tags.get(file) != tag or not (directory / file).is_file():
            compile_bpf(source, name, defines, directory / file)
            tags[file] = tag
            made.append(file)
    if made:
        write_json(directory / "manifest.json", tags)
    return made
