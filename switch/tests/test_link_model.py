# SPDX-License-Identifier: Apache-2.0
"""The Python model of a link is that of the Rust code: made of the schema that a test of crate traffic compares."""

from __future__ import annotations

import subprocess
import sys

import link_model


def test_the_module_is_made_of_the_schema() -> None:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "link_model.py", "-"]
    made = subprocess.run(command, input=link_model.model(), capture_output=True, text=True, timeout=60, check=True)
    assert (link_model.FOLDER / "link_model.py").read_text(encoding="utf-8") == made.stdout, "run setup/link_model.py"
