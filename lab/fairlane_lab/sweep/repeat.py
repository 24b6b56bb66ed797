# SPDX-License-Identifier: Apache-2.0
"""`repeat.sh` of a run folder: the command that makes its runs again from the folder alone, wherever it lies."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlane_lab.results.store import EVENTS
from fairlane_lab.results.tables import DETERMINISTIC

SCRIPT = "repeat.sh"
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
    [ ! -e "$here/$file" ] || cmp "$here/$file" "$here/again/$file"
done
echo "the same bytes: {files}"
"""


def repeat_script(campaign: Mapping[str, Any], git: str) -> str:
    """The text for a folder with this campaign.json, made by that commit of fairlane. In real time numbers differ: there it compares nothing."""
    commands = "\n".join(_command(campaign, selection) for selection in campaign["selections"])
    text = _SCRIPT.format(git=git, folder=Path(campaign["file"]).parent, commands=commands)
    files = " ".join([*(f"{name}.parquet" for name in DETERMINISTIC), EVENTS])
    return text if campaign["runtime"] == "mininet" else text + _COMPARE.format(files=files)


def _command(campaign: Mapping[str, Any], selection: Mapping[str, Any]) -> str:
    """The command that made these runs, of the copied experiment."""
    words = ["sudo"] if campaign["runtime"] == "mininet" else []
    words += ["fairlane", "lab", "run", Path(campaign["file"]).name, "--folder", "$here/again", "--no-plots"]
    words += ["--runtime", campaign["runtime"], "--target", campaign["target"], "--seed", str(campaign["seed"])]
    words += ["--quick"] if campaign["quick"] else []
    words += ["--repeats", str(selection["repeats"])] if selection["repeats"] else []
    for param, values in selection["values"].items():
        listed = ",".join(each if isinstance(each, str) else json.dumps(each) for each in values)
        words += ["--set", f"{param}={listed}"]
    return " ".join(f'"{word}"' if word.startswith("$here") else shlex.quote(word) for word in words)
