# SPDX-License-Identifier: Apache-2.0
"""What Qthresh can be set to: ports, classes, policies, and how the loop decides. The file, the commands and the state file have these models."""

from __future__ import annotations

from typing import Annotated

from fairlane import Dscp, Duration, Flag, Packets, Section, Settings, find_by_name
from fairlane.switch import PortNumber, SwitchName
from pydantic import ConfigDict, Field, IPvAnyAddress, model_validator

from .flows import FlowKey
from .model import DEFAULT_K
from .names import CLASSES, SCHEMES, WEIGHT_MAX, WEIGHT_MIN, WEIGHT_ONE, Scheme

PolicyKey = tuple[str, int, int]
"""(switch, egress port, class)."""
ClassNumber = Annotated[int, Field(ge=0, lt=CLASSES)]
Weight = Annotated[float, Field(ge=WEIGHT_MIN, le=WEIGHT_MAX)]
Threshold = Annotated[Packets, Field(le=65_535)]
L4Port = Annotated[int, Field(ge=1, le=65_535)]


class FlowWeightConfig(Section):
    """The weight of new flows that have all that is given; the first rule that matches counts."""

    weight: Weight
    src: IPvAnyAddress | None = None
    dst: IPvAnyAddress | None = None
    src_port: L4Port | None = None
    dst_port: L4Port | None = None

    def matches(self, flow: FlowKey) -> bool:
        """Whether the flow has all that is given."""
        src, dst = flow.hosts
        of_flow = {"src": src, "dst": dst, "src_port": flow.src_port, "dst_port": flow.dst_port}
        return all(str(getattr(self, name) or value) == str(value) for name, value in of_flow.items())


class QthreshLoop(Section):
    """Keys of `[loop]`; what is not given is as in the loop's own defaults."""

    flow_idle: Annotated[Duration, Field(ge=1, le=86_400)] = 30.0
    "A flow's entry ages out after this time: far longer than any queue takes to drain, so a slot is empty when it is given again."
    flow_weights: tuple[FlowWeightConfig, ...] = ()

    def weight_of(self, flow: FlowKey) -> float | None:
        """What the first rule that matches gives a flow; None: no rule matches, and it has its class's weight."""
        return next((rule.weight for rule in self.flow_weights if rule.matches(flow)), None)


class QthreshPort(Settings):
    """One port of a switch."""

    managed: bool | None = None
    "Qthresh: whether the program counts, classifies and refuses here."
    limit_packets: Packets | None = None
    "Qthresh: what the program lets wait; default queue_packets. At most what the queue holds."
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
        if not self.priority:
            raise ValueError("a class without ingress_port, dscp or pcp would be all packets: give one of them")
        return self

    @property
    def priority(self) -> int:
        """Higher for the more precise one: 1 to 7, and equal only for two that match the same fields."""
        return 4 * (self.ingress_port is not None) + 2 * (self.dscp is not None) + (self.pcp is not None)


class PolicySettings(Section):
    """What is stored of one (switch, egress port, class) beside its entry: the document `policy/SWITCH/PORT/CLASS`."""

    model_config = ConfigDict(extra="ignore")

    threshold: Threshold | None = None
    "Packets of one flow that may wait, before the weight: set by hand. Left out: the loop decides (mode auto)."
    weight: Annotated[Weight, Flag("--weight -w")] = 1.0
    "Weight of the class (1/256 to 255)."
    k: Annotated[float, Field(ge=0.1, le=100), Flag("--k")] = DEFAULT_K
    "Constant of eq. (9)."
    self_tuning: Annotated[bool, Flag("--self-tuning/--model")] = True
    "Mode auto: correct eq. (9) by the flows' goodputs, or eq. (9) alone."

    @property
    def mode(self) -> str:
        """Who decides the threshold: `auto`, the loop; `manual`, a person."""
        return "auto" if self.threshold is None else "manual"

    @model_validator(mode="after")
    def _admits_a_packet(self) -> PolicySettings:
        if self.threshold is not None and self.threshold * round(self.weight * WEIGHT_ONE) < WEIGHT_ONE:
            raise ValueError(
                f"weight: {self.weight:g} with a threshold of {self.threshold} packets would admit nothing: "
                f"must be at least {1 / self.threshold:.4g}"
            )
        return self


class _Place(Section):
    switch: SwitchName
    port: PortNumber
    traffic_class: ClassNumber = Field(default=0, alias="class")
    scheme: Annotated[Scheme, Flag("--scheme", "<str>", lambda text, _: find_by_name("scheme", text, SCHEMES))] = (
        Scheme.QTHRESH
    )
    "drop_tail: one queue. qthresh: one queue, a threshold for each flow. lanes: a queue for each flow, as long as its threshold."


class PolicyConfig(PolicySettings, _Place):
    """How an egress port treats a class. Settings of one with drop_tail count when it gets another scheme."""

    @property
    def key(self) -> PolicyKey:
        """(switch, egress port, class)."""
        return self.switch, self.port, self.traffic_class

    @property
    def settings(self) -> PolicySettings:
        """What is stored of it."""
        return PolicySettings.model_validate(self.model_dump())


class QthreshSections(Section):
    """At the top of the file."""

    classes: tuple[ClassConfig, ...] | None = None
    "Qthresh: all rules of a traffic class other than 0; others are removed."
    policies: tuple[PolicyConfig, ...] | None = None
    "Qthresh: all policies; a class without one is drop-tail."
