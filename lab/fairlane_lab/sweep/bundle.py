# SPDX-License-Identifier: Apache-2.0
"""One archive of a run folder from which anyone makes its runs again: its tables, the files that decided them, and one command."""

from __future__ import annotations

import json
import shlex
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from fairlane_controller.documents import parse_json
from fairlane_controller.errors import FairlaneError

from fairlane_lab.definition import ExperimentError, Selection, expand, load
from fairlane_lab.inputs import COPIES, campaign_inputs
from fairlane_lab.results.store import EVENTS
from fairlane_lab.results.summary_file import SUMMARY, RunFolderError, read_summary
from fairlane_lab.results.tables import DETERMINISTIC, TABLES
from fairlane_lab.sweep.campaign import CAMPAIGN

COMMAND = "repeat.sh"
README = "README.md"
_SCRIPT = """\
#!/bin/sh
# Makes the runs of this folder again, into again/{compares}. Needs fairlane {git}.
set -e
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/{folder}"
{commands}
{end}
"""
_COMPARE = """\
for file in {files}; do
    cmp "$here/$file" "$here/again/$file"
done
echo "the same bytes: {files}"
"""
_README = """\
# Runs of the experiment {name}

`sh {command}` makes them again{compares}.

It needs fairlane {git}, set up as its README says. This decided the runs; `{copies}/` has the files, but for fairlane itself:

| what | hash |
|---|---|
{rows}
"""


def make_bundle(run: Path, out: Path) -> list[str]:
    """Write the archive of a run folder to `out`, whole or not at all. Returns what whoever repeats it has to know. Raises RunFolderError, OSError."""
    summary = read_summary(run)
    campaign = _read_campaign(run)
    if not summary["complete"]:
        raise RunFolderError(f"{run}: not complete: some runs are missing; the same command again makes them")
    _check_copies(run, campaign)
    git = str(summary.get("metadata", {}).get("git", "unknown"))
    real_time = campaign["runtime"] == "mininet"
    compares = "; in real time their numbers differ" if real_time else " and compares them, byte for byte"
    tables = [f"{name}.parquet" for name in DETERMINISTIC] + [EVENTS]
    there = [name for name in tables if (run / name).exists()]
    script = _SCRIPT.format(
        compares=compares,
        git=git,
        folder=Path(campaign["file"]).parent,
        commands="\n".join(_command(campaign, selection) for selection in campaign["selections"]),
        end="" if real_time else _COMPARE.format(files=" ".join(there)),
    )
    hashes = {**campaign["build"], "experiment": campaign["definition_sha256"][:12], **campaign["inputs"]}
    readme = _README.format(
        name=campaign["experiment"],
        command=COMMAND,
        compares=compares,
        git=git,
        copies=COPIES,
        rows="\n".join(f"| {name} | {digest} |" for name, digest in hashes.items()),
    )
    draft = out.with_name(f".{out.name}.new")
    folder = out.name.removesuffix(".tar.gz")
    try:
        with tarfile.open(draft, "w:gz") as archive:
            for name, text, mode in ((README, readme, 0o644), (COMMAND, script, 0o755)):
                about = tarfile.TarInfo(f"{folder}/{name}")
                about.size, about.mode = len(text.encode()), mode
                archive.addfile(about, BytesIO(text.encode()))
            for name in (CAMPAIGN, SUMMARY, EVENTS, *(f"{table}.parquet" for table in TABLES), COPIES):
                if (run / name).exists():
                    archive.add(run / name, f"{folder}/{name}", filter=_of_nobody)
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)
    return ["this fairlane has changes that are in no commit: they are not in the bundle"] if "dirty" in git else []


def _read_campaign(run: Path) -> dict[str, Any]:
    path = run / CAMPAIGN
    try:
        found: Any = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path}: not readable: {error}") from None
    if not isinstance(found, dict) or "file" not in found:
        raise RunFolderError(f"{run}: of an older fairlane, which kept no copies of its files: run it again")
    return cast("dict[str, Any]", found)


def _check_copies(run: Path, campaign: Mapping[str, Any]) -> None:
    """Raises RunFolderError unless the copies alone are what the runs were made from."""
    file = run.resolve() / campaign["file"]
    try:
        definition = load(str(file))
        every = Selection(campaign["runtime"], repeats=1)
        chosen = [every, *(replace(every, values=each["values"]) for each in campaign["selections"])]
        scenarios = [scenario for selection in chosen for scenario in expand(definition, selection)]
        inputs = campaign_inputs(definition, scenarios)
    except (ExperimentError, FairlaneError) as error:
        raise RunFolderError(f"{run}: {COPIES}/ is not all that the experiment needs: {error}") from None
    now = {each.name(file.parent): each for each in inputs if each.kind != "experiment"}
    for name, digest in campaign["inputs"].items():
        each = now.get(name)
        if each is not None and each.kind == "command" and "/" in each.given:
            each = replace(each, files=tuple(path for path in [file.parent / each.given] if path.is_file()))
        if each is None or (each.kind == "sender" and not each.files[0].is_relative_to(run.resolve())):
            raise RunFolderError(
                f"{run}: {name} is not found in the copies: name it by a path relative to the file that uses it"
            )
        if each.digest != digest:
            raise RunFolderError(f"{run}: {name} was {digest}, and {each.digest} is what the copies lead to")
    if definition.sha256 != campaign["definition_sha256"]:
        raise RunFolderError(f"{file}: is not what was run any more")


def _command(campaign: Mapping[str, Any], selection: Mapping[str, Any]) -> str:
    """A line of the script: the command that made these runs, of the copied experiment."""
    words = ["fairlane", "lab", "sweep", Path(campaign["file"]).name, "--folder", "$here/again"]
    if campaign["runtime"] == "mininet":
        words = ["sudo", "fairlane", "lab", "run", Path(campaign["file"]).name, "--results", "$here/again"]
        words += ["--target", campaign["target"]]
    words += ["--runtime", campaign["runtime"], "--seed", str(campaign["seed"])]
    words += ["--quick"] if campaign["quick"] else []
    words += ["--repeats", str(selection["repeats"])] if selection["repeats"] else []
    for name, values in selection["values"].items():
        words += ["--set", f"{name}={','.join(each if isinstance(each, str) else json.dumps(each) for each in values)}"]
    return " ".join(f'"{word}"' if word.startswith("$here") else shlex.quote(word) for word in words)


def _of_nobody(about: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the names and numbers of this machine's users."""
    about.uid = about.gid = 0
    about.uname = about.gname = ""
    return about
