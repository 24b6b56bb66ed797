# SPDX-License-Identifier: Apache-2.0
"""The requests of the control socket: thresholds, schemes, entries with settings of policies, weights of new flows."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairlane_controller.program.requests import Name, Plain, Request, SwitchRequest, TableWrite

MAX_RULES = 1_000


class _Place(SwitchRequest):
    """Of one (egress port, class)."""

    port: int
    traffic_class: int = Field(default=0, alias="class")


class _ThresholdSet(_Place):
    packets: int | None = None
    weight: float | None = None


class _ThresholdAuto(_Place):
    k: float | None = None
    weight: float | None = None
    self_tuning: bool | None = None


Scheme = Literal["drop_tail", "qthresh", "lanes"]


class _SchemeSet(_Place):
    scheme: Scheme


class _Policies(Request):
    """One of those above for several places, `change` without its place; `switches` None: all."""

    change: Plain
    switches: list[Name] | None = None
    port: int | None = None
    every: bool = False


class _Explain(SwitchRequest):
    """Why each flow of a port has what it has."""

    port: int


class _FlowWeights(Request):
    rules: Annotated[list[Plain], Field(max_length=MAX_RULES)]


REQUESTS: dict[str, type[Request]] = {
    "threshold_set": _ThresholdSet,
    "threshold_auto": _ThresholdAuto,
    "scheme_set": _SchemeSet,
    "policies": _Policies,
    "explain": _Explain,
    "table_write": TableWrite,
    "flow_weights": _FlowWeights,
}
