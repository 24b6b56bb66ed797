# SPDX-License-Identifier: Apache-2.0
"""What `fairlane.toml` says of Qthresh: ports, classes, policies, and how the loop decides."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fairlane import Dscp, Duration, ErrorCode, FairlaneError, Packets, Section, Settings, Size, short
from fairlane.switch import PortNumber, SwitchName
from fairlane.text import describe
from pydantic import AfterValidator, Field, ValidationError, model_validator

from .flows import FlowKey
from .model import DEFAULT_K, WEIGHT_MAX, WEIGHT_MIN
from .names import CLASSES
from .policies import Scheme
from .store import Mode

PolicyKey = tuple[str, int, int]
"""(switch, egress port, class)."""
ClassNumber = Annotated[int, Field(ge=0, lt=CLASSES)]
Weight = Annotated[float, Field(ge=WEIGHT_MIN, le=WEIGHT_MAX)]


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"{short(repr(text))} is no address") from None


IpAddress = Annotated[str, AfterValidator(_address)]


class FlowWeightConfig(Section):
    """The weight of new flows that have all that is given; the first rule that matches counts."""

    weight: Weight
    src: IpAddress | None = None
    dst: IpAddress | None = None
    src_port: int | None = Field(default=None, ge=1, le=65_535)
    dst_port: int | None = Field(default=None, ge=1, le=65_535)

    def matches(self, flow: FlowKey) -> bool:
        """Whether the flow has all that is given."""
        src, dst = flow.hosts
        return (
            self.src in (None, src)
            and self.dst in (None, dst)
            and self.src_port in (None, flow.src_port)
            and self.dst_port in (None, flow.dst_port)
        )


Period = Annotated[Duration, Field(gt=0, le=3600)]


class QthreshLoop(Section):
    """Keys of `[loop]`; what is not given is as in the loop's own defaults."""

    evaluate_period: Annotated[Duration, Field(ge=0.05, le=60)] = 0.25
    "Between two decisions about a threshold."
    tune_period: Annotated[Duration, Field(ge=0.1, le=60)] = 1.0
    "Between two corrections of the flows' own thresholds."
    min_write_interval: Annotated[Duration, Field(ge=0.1, le=3600)] = 1.0
    "At most one write in this time and policy."
    samples: int = Field(default=2, ge=1, le=100)
    "Evaluations in a row that must agree on another value."
    margin_packets: float = Field(default=0.1, ge=0, le=1000)
    "Hysteresis: how far the exact value must be past the rounding boundary of the value in force,"
    margin_ratio: float = Field(default=0.02, ge=0, le=1)
    "and how far as a part of the value in force: a packet more or less is nothing to a threshold of a hundred."
    agree_ratio: float = Field(default=0.05, ge=0, le=1)
    "Values agree when they differ by no more than a packet, or by no more than this part."
    max_age: Period = 3.0
    "A measurement of BW, L_D or N_C older than this decides nothing: the last threshold stays for the next flows."
    max_t_res_age: Period = 10.0
    "The same for T_res, which comes from single packets."
    flow_idle: Annotated[Duration, Field(ge=1, le=86_400)] = 30.0
    "A flow's entry ages out after this time: far longer than any queue takes to drain, so a slot is empty when it is given again."
    flow_weights: tuple[FlowWeightConfig, ...] = ()


@dataclass(frozen=True)
class WeightRules:
    """The first rule that matches a flow gives its weight; None (its class's) when none does."""

    rules: Sequence[FlowWeightConfig] = ()

    def __call__(self, flow: FlowKey) -> float | None:
        return next((rule.weight for rule in self.rules if rule.matches(flow)), None)

    @classmethod
    def parse(cls, rules: Any) -> WeightRules:
        """From `[{"dst_port": 5001, "weight": 2}, …]`. Raises BAD_INPUT naming the rule."""
        try:
            return cls(QthreshLoop.model_validate({"flow_weights": rules}).flow_weights)
        except ValidationError as ex:
            raise FairlaneError(ErrorCode.BAD_INPUT, describe(ex, QthreshLoop)[0]) from None


class QthreshPort(Settings):
    """One port of a switch."""

    managed: bool | None = None
    "Qthresh: whether the program counts, classifies and refuses here."
    limit_packets: Packets | None = None
    "Qthresh: what the program lets wait; default queue_packets. At most what the queue holds."
    limit_bytes: Size | None = None
    report_period: Annotated[Duration, Field(ge=0.001, le=60)] | None = None
    "Qthresh: between two reports of the port."
    ecn: bool = False
    "Qthresh: whether packets that can be marked (ECT) are marked above the threshold, and refused above twice the threshold only. Left out: as it is in force."


class ClassConfig(Section):
    """Packets of a traffic class; what is left out matches all, the more precise rule wins (port, then DSCP, then PCP)."""

    traffic_class: ClassNumber = Field(alias="class")
    switch: str = ""
    "Empty: every switch."
    ingress_port: PortNumber | None = None
    dscp: Dscp | None = None
    pcp: int | None = Field(default=None, ge=0, le=7)
    "Priority of the frame's VLAN tag."

    @model_validator(mode="after")
    def _matches_something(self) -> ClassConfig:
        if self.ingress_port is None and self.dscp is None and self.pcp is None:
            raise ValueError("a class without ingress_port, dscp or pcp would be all packets: give one of them")
        return self

    @property
    def priority(self) -> int:
        """Higher for the more precise one: 1 to 7, and equal only for two that match the same fields."""
        return 4 * (self.ingress_port is not None) + 2 * (self.dscp is not None) + (self.pcp is not None)


class PolicyConfig(Section):
    """How an egress port treats a class."""

    switch: SwitchName
    port: PortNumber
    traffic_class: ClassNumber = Field(default=0, alias="class")
    scheme: Scheme = Scheme.QTHRESH
    mode: Mode | None = None
    "auto: the loop decides; manual: `threshold` holds. Default: manual with a threshold, else auto."
    threshold: Annotated[Packets, Field(le=65_535)] | None = None
    "Packets of one flow that may wait, before the weight."
    weight: Weight = 1.0
    k: float = Field(default=DEFAULT_K, ge=0.1, le=100)
    "Constant of eq. (9)."
    self_tuning: bool = True
    "Mode auto: correct (9) by the flows' goodputs."
    min_packets: Annotated[Packets, Field(le=65_535)] | None = None
    "Mode auto: bounds of the threshold."
    max_packets: Annotated[Packets, Field(le=65_535)] | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> PolicyConfig:
        if self.scheme is Scheme.DROP_TAIL:
            for name in ("threshold", "mode", "weight", "k", "self_tuning", "min_packets", "max_packets"):
                if name in self.model_fields_set:
                    raise ValueError(f"{name}: drop_tail has none; leave it out, or set scheme to qthresh")
        if self.mode is Mode.AUTO and self.threshold is not None:
            raise ValueError("threshold: with mode auto the loop decides it; leave it out, or set mode to manual")
        if self.mode is Mode.MANUAL and self.threshold is None and self.scheme is not Scheme.DROP_TAIL:
            raise ValueError("threshold: mode manual needs one, in packets")
        low, high = self.min_packets, self.max_packets
        if low is not None and high is not None and low > high:
            raise ValueError(f"min_packets: {low} is above max_packets {high}")
        if self.threshold is not None and self.threshold * round(self.weight * 256) < 256:
            raise ValueError(
                f"weight: {self.weight:g} with a threshold of {self.threshold} packets would admit nothing: "
                f"must be at least {1 / self.threshold:.4g}"
            )
        return self

    @property
    def key(self) -> PolicyKey:
        """(switch, egress port, class)."""
        return self.switch, self.port, self.traffic_class


class QthreshSections(Section):
    """At the top of the file."""

    classes: tuple[ClassConfig, ...] | None = None
    "Qthresh: all rules of a traffic class other than 0; others are removed."
    policies: tuple[PolicyConfig, ...] | None = None
    "Qthresh: all policies; a class without one is drop-tail."
