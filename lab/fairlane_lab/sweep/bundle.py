# SPDX-License-Identifier: Apache-2.0
"""One archive of a run folder from which anyone makes its runs again: its tables, the files that decided them, and one command."""

from __future__ import annotations

import json
import os
import shlex
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from fairlane_controller.errors import FairlaneError

from fairlane_lab.definition import ExperimentError, Selection, load
from fairlane_lab.inputs import COPIES, Input
from fairlane_lab.problems import RunFolderError
from fairlane_lab.results.folder import write_whole
from fairlane_lab.results.rows import TABLES
from fairlane_lab.results.store import EVENTS
from fairlane_lab.results.summary_file import SUMMARY, read_document, read_summary
from fairlane_lab.results.tables import DETERMINISTIC
from fairlane_lab.sweep.campaign import CAMPAIGN, Campaign

COMMAND = "repeat.sh"
_SCRIPT = """\
#!/bin/sh
# Makes the runs of this folder again, into again/. Needs fairlane {git}, set up as its README says.
set -e
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/{folder}"
{commands}
"""
_COMPARE = """\
for file in {files}; do
    cmp "$here/$file" "$here/again/$file"
done
echo "the same bytes: {files}"
"""


def make_bundle(run: Path, out: Path) -> list[str]:
    """Write the archive of a run folder to `out`, whole or not at all. Returns what whoever repeats it has to know. Raises RunFolderError, OSError."""
    summary, campaign = read_summary(run), read_document(run, CAMPAIGN)
    if not summary["complete"]:
        raise RunFolderError(f"{run}: not complete: some runs are missing; the same command again makes them")
    _check_copies(run, campaign)
    git = str(summary.get("metadata", {}).get("git", "unknown"))
    commands = "\n".join(_command(campaign, selection) for selection in campaign["selections"])
    script = _SCRIPT.format(git=git, folder=Path(campaign["file"]).parent, commands=commands)
    if campaign["runtime"] != "mininet":  # in real time numbers differ
        tables = [*(f"{name}.parquet" for name in DETERMINISTIC), EVENTS]
        script += _COMPARE.format(files=" ".join(name for name in tables if (run / name).exists()))
    folder = out.name.removesuffix(".tar.gz")

    def fill(draft: Path) -> None:
        with tarfile.open(draft, "w:gz") as archive:
            about = tarfile.TarInfo(f"{folder}/{COMMAND}")
            about.size, about.mode = len(script.encode()), 0o755
            archive.addfile(about, BytesIO(script.encode()))
            for name in (CAMPAIGN, SUMMARY, EVENTS, *(f"{table}.parquet" for table in TABLES), COPIES):
                if (run / name).exists():
                    archive.add(run / name, f"{folder}/{name}", filter=_of_nobody)

    write_whole(out, fill)
    return ["this fairlane has changes that are in no commit: they are not in the bundle"] if "dirty" in git else []


def _check_copies(run: Path, campaign: Mapping[str, Any]) -> None:
    """Raises RunFolderError unless the copies alone are what the runs were made from."""
    run = run.resolve()
    file = run / campaign["file"]
    here = Path.cwd()
    os.chdir(file.parent)  # as the script does, for commands with a relative path
    try:
        definition = load(file.name)
        if definition.sha256 != campaign["definition_sha256"]:
            raise RunFolderError(f"{file}: is not what was run any more")
        found: dict[str, str] = {}
        for each in campaign["selections"]:
            mine = Campaign(definition, Selection(campaign["runtime"], repeats=1, values=each["values"]), run)
            inputs = [each for each in mine.inputs(mine.scenarios()) if each.kind != "sender" or _is_in(run, each)]
            found |= mine.identity(inputs)["inputs"]
    except (ExperimentError, FairlaneError) as error:
        raise RunFolderError(f"{run}: {COPIES}/ is not all that the experiment needs: {error}") from None
    finally:
        os.chdir(here)
    for name, digest in campaign["inputs"].items():
        if found.get(name) != digest:
            text = f"{run}: {name} was {digest}, and is {found.get(name, 'missing')} in the copies"
            raise RunFolderError(f"{text}: name it by a path relative to the file that uses it")


def _is_in(run: Path, each: Input) -> bool:
    return each.files[0].is_relative_to(run)


def _command(campaign: Mapping[str, Any], selection: Mapping[str, Any]) -> str:
    """A line of the script: the command that made these runs, of the copied experiment."""
    name = Path(campaign["file"]).name
    words = ["fairlane", "lab", "sweep", name, "--folder", "$here/again"]
    if campaign["runtime"] == "mininet":
        words = ["sudo", "fairlane", "lab", "run", name, "--results", "$here/again", "--target", campaign["target"]]
    words += ["--runtime", campaign["runtime"], "--seed", str(campaign["seed"])]
    words += ["--quick"] if campaign["quick"] else []
    words += ["--repeats", str(selection["repeats"])] if selection["repeats"] else []
    for param, values in selection["values"].items():
        words += [
            "--set",
            f"{param}={','.join(each if isinstance(each, str) else json.dumps(each) for each in values)}",
        ]
    return " ".join(f'"{word}"' if word.startswith("$here") else shlex.quote(word) for word in words)


def _of_nobody(about: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the names and numbers of this machine's users."""
    about.uid = about.gid = 0
    about.uname = about.gname = ""
    return about
