# SPDX-License-Identifier: Apache-2.0
"""Weights of single flows, as people ask for them through the control socket: rules by address and port; pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, cast

from fairlane_controller.errors import ErrorCode, FairlaneError, short
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.flows import FlowKey

_KEYS = ("src", "dst", "src_port", "dst_port", "weight")


@dataclass(frozen=True)
class WeightRule:
    """The weight of every new flow that has all that is not None."""

    weight: float
    src: str | None = None
    dst: str | None = None
    src_port: int | None = None
    dst_port: int | None = None

    def matches(self, key: FlowKey) -> bool:
        """Whether the rule holds for a flow."""
        return (
            self.src in (None, str(key.src))
            and self.dst in (None, str(key.dst))
            and self.src_port in (None, key.src_port)
            and self.dst_port in (None, key.dst_port)
        )


@dataclass(frozen=True)
class WeightRules:
    """The first rule that matches a flow gives its weight; None (its class's) when none does."""

    rules: tuple[WeightRule, ...] = ()

    def __call__(self, key: FlowKey) -> float | None:
        return next((rule.weight for rule in self.rules if rule.matches(key)), None)

    @classmethod
    def parse(cls, rules: Any) -> WeightRules:
        """From `[{"dst_port": 5001, "weight": 2}, …]`. Raises BAD_INPUT or OUT_OF_RANGE naming the rule."""
        if not isinstance(rules, list):
            raise FairlaneError(ErrorCode.BAD_INPUT, '"rules" must be a list of objects')
        return cls(tuple(_rule(index, rule) for index, rule in enumerate(cast("list[Any]", rules))))


def _rule(index: int, rule: Any) -> WeightRule:
    where = f"rule {index}"
    if not isinstance(rule, dict):
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{where} must be an object")
    fields: dict[str, Any] = {**cast("dict[str, Any]", rule)}
    unknown = [key for key in fields if key not in _KEYS]
    if unknown:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{where}: {short(repr(unknown[0]))} is not one of {', '.join(_KEYS)}")
    weight = fields.get("weight")
    if not isinstance(weight, (int, float)):
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{where}: needs a number as weight")
    program.encode_weight(weight)
    for name in ("src", "dst"):
        if fields.get(name) is not None:
            try:
                fields[name] = str(ipaddress.ip_address(fields[name]))
            except ValueError:
                raise FairlaneError(
                    ErrorCode.BAD_INPUT, f"{where}: {name} {short(repr(fields[name]))} is no address"
                ) from None
    for name in ("src_port", "dst_port"):
        if fields.get(name) is not None and not (isinstance(fields[name], int) and 0 < fields[name] < 65_536):
            raise FairlaneError(ErrorCode.BAD_INPUT, f"{where}: {name} {short(repr(fields[name]))} is not 1 to 65535")
    fields["weight"] = float(weight)
    return WeightRule(**fields)
