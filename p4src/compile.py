#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the P4 programs to BMv2 JSON and P4Info, and knows whether the committed files are current.

`compile.py` compiles (needs p4c-bm2-ss on the PATH) and writes compiled/manifest.json;
`compile.py --check` compares the sources with the manifest and needs no compiler.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rate_table

COMPILER = "p4c-bm2-ss"
PROGRAMS = tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.p4")))
EXAMPLES = ("docs/examples/droptail/droptail", "docs/examples/ecnmark/ecnmark", "docs/examples/talkers/talkers")
"""Programs in folders of their own, as users have them: `fairlane p4 compile FOLDER` compiles those."""
COMPILE_TIMEOUT_S = 120


class CompileError(Exception):
    """The programs could not be compiled; the text says why and what to do."""


@dataclass(frozen=True)
class Layout:
    """Where the sources and the compiled files are."""

    repository: Path
    """The root; every path in a command or in the manifest is relative to it."""

    @property
    def p4src(self) -> Path:
        return self.repository / "p4src"

    @property
    def manifest(self) -> Path:
        return self.p4src / "compiled" / "manifest.json"

    def sources(self) -> list[str]:
        """All P4 files, relative to the repository, sorted."""
        own = [*self.p4src.rglob("*.p4"), *(self.repository / "docs" / "examples").rglob("*.p4")]
        return sorted(path.relative_to(self.repository).as_posix() for path in own)

    def outputs(self, program: str) -> tuple[str, str]:
        """(BMv2 JSON, P4Info) of a program, relative to the repository."""
        stem = program if program in EXAMPLES else f"p4src/compiled/{program}"
        return f"{stem}.json", f"{stem}.p4info.txtpb"

    def digest(self, path: str) -> str:
        return hashlib.sha256((self.repository / path).read_bytes()).hexdigest()


REPOSITORY = Layout(Path(__file__).resolve().parent.parent)


def command(layout: Layout, program: str) -> list[str]:
    """The exact compiler call, run in the repository's root: the JSON records the paths given here."""
    json_path, p4info_path = layout.outputs(program)
    is_example = program in EXAMPLES
    options = ("--Wdisable=unused", "-I", "p4src/include") if is_example else ("--Werror",)
    source = f"{program}.p4" if is_example else f"p4src/{program}.p4"
    return [COMPILER, "--std", "p4-16", *options, "--p4runtime-files", p4info_path, "-o", json_path, source]


def run(arguments: list[str], layout: Layout) -> subprocess.CompletedProcess[str]:
    """Runs the compiler; raises CompileError when it is missing or does not end in time."""
    if shutil.which(arguments[0]) is None:
        raise CompileError(
            f"{arguments[0]} is not on the PATH. The compiled files are committed, so you need it only to change "
            "the P4 programs: docs/install.md says where p4lang's packages are."
        )
    try:
        return subprocess.run(
            arguments, cwd=layout.repository, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise CompileError(f"{' '.join(arguments)}: no end after {COMPILE_TIMEOUT_S} s") from error


def compiler_version(layout: Layout) -> str:
    """One line, such as `Version 1.2.5.6 (SHA: … BUILD: Release)`."""
    result = run([COMPILER, "--version"], layout)
    text = result.stdout + result.stderr
    return next((line.strip() for line in text.splitlines() if "ersion" in line), text.strip())


def compile_all(layout: Layout) -> None:
    """Compiles every program and writes the manifest; on an error the manifest stays as it was."""
    manifest: dict[str, Any] = {"compiler": COMPILER, "version": compiler_version(layout), "programs": {}}
    manifest["sources"] = {path: layout.digest(path) for path in layout.sources()}
    for program in (*PROGRAMS, *EXAMPLES):
        arguments = command(layout, program)
        result = run(arguments, layout)
        if result.returncode != 0 or result.stderr.strip():
            raise CompileError(f"{' '.join(arguments)}\n{result.stdout}{result.stderr}")
        manifest["programs"][program] = {
            "command": " ".join(arguments),
            "outputs": {path: layout.digest(path) for path in layout.outputs(program)},
        }
        print(f"compiled {arguments[-1]}")
    layout.manifest.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")


def stale(layout: Layout) -> list[str]:
    """What is not current, one sentence each; empty when the compiled files belong to the sources."""
    try:
        manifest = json.loads(layout.manifest.read_text())
    except FileNotFoundError:
        return [f"{layout.manifest.relative_to(layout.repository)} is missing"]
    problems: list[str] = []
    recorded: dict[str, str] = manifest["sources"]
    present = layout.sources()
    problems += [f"{path} was added after the last compilation" for path in present if path not in recorded]
    problems += [f"{path} was removed after the last compilation" for path in recorded if path not in present]
    problems += [
        f"{path} was changed after the last compilation"
        for path in present
        if path in recorded and layout.digest(path) != recorded[path]
    ]
    for program in (*PROGRAMS, *EXAMPLES):
        entry = manifest["programs"].get(program)
        if entry is None:
            problems.append(f"{program} is not in the manifest")
            continue
        if entry["command"] != " ".join(command(layout, program)):
            problems.append(f"{program} was compiled by another command")
        for path, digest in entry["outputs"].items():
            if not (layout.repository / path).is_file():
                problems.append(f"{path} is missing")
            elif layout.digest(path) != digest:
                problems.append(f"{path} is not what p4c wrote")
    return problems


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether the compiled files are current")
    options = parser.parse_args(argv)
    rate_table.write()
    if options.check:
        problems = stale(REPOSITORY)
        for problem in problems:
            print(problem, file=sys.stderr)
        if problems:
            print("run `make p4` and commit p4src/compiled", file=sys.stderr)
        return 1 if problems else 0
    try:
        compile_all(REPOSITORY)
    except CompileError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
