# SPDX-License-Identifier: Apache-2.0
"""The file's `[loop]` as the control socket has it."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from fairlane_controller.config.model import LoopConfig, loop_model
from fairlane_controller.errors import ErrorCode, FairlaneError


def parse_loop(data: dict[str, Any] | None) -> LoopConfig:
    """Of plain data, as the control socket has it; BAD_INPUT when it is none."""
    try:
        return loop_model().model_validate(data or {})
    except ValidationError as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"options of the loop: {ex.errors()[0]['msg']}") from None
