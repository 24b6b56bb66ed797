# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab …` in this process, as the command `fairlane` runs it: an error is one sentence and its exit code."""

from __future__ import annotations

from fairlane_controller.errors import FairlaneError
from fairlane_lab.cli import app
from typer.testing import CliRunner, Result


def lab(*arguments: str) -> Result:
    """What a command printed, and its exit code."""
    result = CliRunner().invoke(app, arguments)
    if isinstance(result.exception, FairlaneError):
        result.exit_code = result.exception.exit_code
        result.output_bytes += f"fairlane: {result.exception.message}\n".encode()
        result.exception = SystemExit(result.exit_code)
    return result
