# SPDX-License-Identifier: Apache-2.0
"""Compiles the BPF objects and the holder into `hosts/build/`, only what changed: `python -m fairlane_hosts.build`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .errors import HostsError
from .programs import PROGRAMS, HostProgram
from .variants import Variant, bpf_variants

ROOT = Path(__file__).resolve().parents[1]
BUILD_TIMEOUT_S = 120
PACKAGES = "apt install clang gcc libbpf-dev libelf-dev linux-libc-dev"
_BPF_FLAGS = ("-target", "bpf", "-g", "-O2", "-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")
_C_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11")


def build_dir() -> Path:
    """Where the compiled objects are: `$FAIRLANE_HOSTS_BUILD`, or `build/` beside the package."""
    return Path(os.environ.get("FAIRLANE_HOSTS_BUILD") or ROOT / "build")


def holder_path() -> Path:
    return build_dir() / "fairlane-cc"


def _tool(variable: str, *candidates: str) -> str:
    for candidate in (os.environ.get(variable) or "", *candidates):
        found = shutil.which(candidate) if candidate else None
        if found:
            return found
    raise HostsError("not-built", f"no {candidates[0]} on the PATH (nor in ${variable})", PACKAGES)


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise HostsError("not-built", f"{what} took longer than {BUILD_TIMEOUT_S} s") from error
    if done.returncode:
        missing = PACKAGES if "file not found" in done.stderr or "No such file" in done.stderr else ""
        raise HostsError("not-built", f"cannot compile {what}:\n{done.stderr.strip()}", missing)


def _digest(paths: list[Path], extra: str) -> str:
    digest = hashlib.sha256(extra.encode())
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _headers() -> list[Path]:
    return sorted(path for folder in ("bpf", "bpf/programs", "cc") for path in (ROOT / folder).glob("*.h"))


def variant_tag(source: str, name: str, defines: Mapping[str, int]) -> str:
    """What tells one build of a program from another: a hash of its sources, name, parameters and flags."""
    return _digest([ROOT / "bpf" / source, *_headers()], json.dumps([name, dict(defines), _BPF_FLAGS]))


def program_tag(program: HostProgram) -> str:
    """What tells one build of a host program from another."""
    return _digest([ROOT / "bpf" / "programs" / program.source, *_headers()], json.dumps([program.name, _BPF_FLAGS]))


def compile_bpf(source: str, name: str, defines: Mapping[str, int], output: Path) -> None:
    """Compile `bpf/<source>` to `output` as the congestion control `name`. Raises HostsError `not-built`."""
    clang = _tool("CLANG", "clang", *(f"clang-{version}" for version in range(22, 11, -1)))
    triplet = subprocess.run(
        [_tool("CC", "gcc", "cc"), "-print-multiarch"], capture_output=True, text=True, timeout=10, check=False
    ).stdout.strip()
    arguments = [f"-D{key}={value}" for key, value in {"FL_NAME": name, **defines}.items()]
    include = [f"-I/usr/include/{triplet}"] if triplet else []
    with tempfile.TemporaryDirectory(dir=output.parent) as scratch:
        partial = Path(scratch) / output.name
        _run([clang, *_BPF_FLAGS, *include, *arguments, "-c", f"bpf/{source}", "-o", str(partial)], f"bpf/{source}")
        partial.replace(output)


def _compile_holder(output: Path) -> None:
    with tempfile.TemporaryDirectory(dir=output.parent) as scratch:
        partial = Path(scratch) / output.name
        compiler = _tool("CC", "gcc", "cc")
        sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "loader").glob("*.c"))
        _run([compiler, *_C_FLAGS, *sources, "-o", str(partial), "-lbpf"], "hosts/loader")
        partial.replace(output)


def _compile_variant(variant: Variant, directory: Path) -> None:
    assert variant.source is not None
    assert variant.object_name is not None
    compile_bpf(variant.source, variant.congestion_control, variant.defines, directory / variant.object_name)


def read_tags() -> dict[str, str]:
    """Tag by file name of what is built; empty when nothing is."""
    try:
        loaded: object = json.loads((build_dir() / "manifest.json").read_text())
    except (OSError, json.JSONDecodeError):
        return {}
    return {str(k): str(v) for k, v in loaded.items()} if isinstance(loaded, dict) else {}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def build_all(force: bool = False) -> list[str]:
    """Compile what is missing or stale; returns the file names that were made. Raises HostsError `not-built`."""
    directory = build_dir()
    directory.mkdir(parents=True, exist_ok=True)
    tags, made = read_tags(), list[str]()
    holder_tag = _digest(sorted((ROOT / "loader").glob("*.[ch]")), str(_C_FLAGS))
    if force or tags.get("fairlane-cc") != holder_tag or not holder_path().is_file():
        _compile_holder(holder_path())
        tags["fairlane-cc"] = holder_tag
        made.append("fairlane-cc")
    for variant in bpf_variants():
        assert variant.source is not None
        assert variant.object_name is not None
        tag = variant_tag(variant.source, variant.congestion_control, variant.defines)
        if force or tags.get(variant.object_name) != tag or not (directory / variant.object_name).is_file():
            _compile_variant(variant, directory)
            tags[variant.object_name] = tag
            made.append(variant.object_name)
    for program in PROGRAMS.values():
        tag, output = program_tag(program), directory / program.object_name
        if force or tags.get(program.object_name) != tag or not output.is_file():
            compile_bpf(f"programs/{program.source}", program.name, {}, output)
            tags[program.object_name] = tag
            made.append(program.object_name)
    if made:
        partial = directory / "manifest.json.partial"
        partial.write_text(json.dumps(tags, indent=1) + "\n")
        partial.replace(directory / "manifest.json")
    return made


def main() -> int:
    try:
        made = build_all(force="--force" in sys.argv[1:])
    except HostsError as error:
        print(f"fairlane hosts build: {error}", file=sys.stderr)
        return 2
    print(f"hosts: built {', '.join(made)}" if made else "hosts: everything is up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
