# SPDX-License-Identifier: Apache-2.0
"""The requests of the control socket: why flows have what they have, weights of new flows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fairlane_controller.program.requests import Plain, Request, SwitchRequest

MAX_RULES = 1_000


class _Explain(SwitchRequest):
    """Why each flow of a port has what it has."""

    port: int


class _FlowWeights(Request):
    rules: Annotated[list[Plain], Field(max_length=MAX_RULES)]


REQUESTS: dict[str, type[Request]] = {"explain": _Explain, "flow_weights": _FlowWeights}
