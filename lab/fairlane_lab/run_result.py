# SPDX-License-Identifier: Apache-2.0
"""What a runner returns for one scenario: flows, ports, transfers, series, and what it really ran with. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError

AFTER_SPIKE_S = 5.0
"""What a recovery is judged by: so long after a delay spike's end."""

SIM = "fairlane_lab.runners.sim:run"
"""A runner, `run(scenario) -> RunResult`, as `module:function`."""
KERNEL = "fairlane_lab.runners.sim:run_kernel"
"""As `SIM`, with real hosts."""
MININET = "fairlane_lab.runners.mininet:run_many"
"""`run_many(scenarios, options, on_result, report)`."""


class RunError(FairlaneError, RuntimeError):
    """INTERNAL: a run that cannot be trusted or could not be made; the text says what and why."""

    def __init__(self, text: str) -> None:
        super().__init__(ErrorCode.INTERNAL, text)


@dataclass
class FlowResult:
    """One flow over the measured window [warmup_s, duration_s]."""

    flow: str
    group: str
    variant: str
    """What the socket really used, in the names of `fairlane_hosts.variants`."""
    weight: float
    goodput_bps: float
    """New application bytes acknowledged (Mininet: received in order by the sink)."""
    retransmits: int
    timeouts: int | None
    """None where the runtime or the kernel does not tell, as in the two below."""
    cwnd_packets: float | None
    """Mean over the window; None for UDP and for many short connections, where it is not sampled."""
    srtt_ms: float | None
    greedy: bool = True
    """Whether it counts for fairness and Jain: greedy flows do."""
    segments_sent: int | None = None
    """Segments with data, retransmissions too; None where the runtime does not know."""
    window_reductions: int | None = None
    """How often the sender took its window back; Mininet: as its samples show."""
    after_spike_bytes: float | None = None
    """New bytes delivered within `AFTER_SPIKE_S` after the end of a delay spike; None without one."""
    after_spike_retransmits: int | None = None
    """From the spike's start to `AFTER_SPIKE_S` after its end."""
    recovery_s: float | None = None
    """From the spike's end until it has 90 % of what the port then carries (`measures.recovery_s`); None: not within the run."""
    bw_est_bps: float | None = None
    """What its sender (BCR) had estimated when it undid the spike's timeout, frames as the switch counts them; None where it
    estimates nothing, undid none or several, or where the runtime does not tell."""
    bw_est_ratio: float | None = None
    """The same over what the port then carries."""
    counters: dict[str, int] = field(default_factory=dict[str, int])
    """Of the programs of its hosts (`fairlane_hosts.programs`), where it alone has a part in them."""


@dataclass
class PortResult:
    """One managed switch port over the measured window."""

    switch: str
    port: int
    rate_bps: int | None
    """Time-weighted mean where it changed; None where it is not known: of a function of time in Mininet."""
    throughput_bps: float
    """Frame bytes that left, Ethernet header included, FCS not."""
    utilisation: float | None
    """None where the rate is not known."""
    drops: int
    queue_packets: float | None
    """Mean number of waiting packets; None where it cannot be read (BMv2)."""
    after_spike_drops: int | None = None
    """From a delay spike's start to `AFTER_SPIKE_S` after its end; None without one."""
    values: dict[str, float | None] = field(default_factory=dict[str, float | None])
    """What the program knows of the port: `LabPart.port_metrics`."""


@dataclass
class VcResult:
    """One VC over the part of the measured window in which it counts."""

    vc: str
    mcr_bps: float
    """Bits on the line."""
    w_bps: float
    """(3) of Kim and Lee 2004, mean over its time; bits on the line."""
    ideal_bps: float
    """The goodput that its w_i carries: w_i·MSS/(53·c), where c is the cells of a full segment's frame."""
    goodput_bps: float
    """New application bytes acknowledged (UDP: received) of all its flows."""
    mcr_met: float
    """Goodput over the goodput that its MCR carries; 1 and more: met."""
    mcr_met_5s: float | None
    """The same in its worst window of 5 s; None where it counts for less."""
    active_s: float
    """How long it counts."""

    @property
    def ratio(self) -> float:
        """x_i of the Jain index: goodput over the ideal."""
        return self.goodput_bps / self.ideal_bps if self.ideal_bps > 0 else 0.0


@dataclass
class Transfer:
    """One transfer of a `bytes`, `web`, `interactive` or `video` application (a segment): finished, or cut by the run's end."""

    flow: str
    group: str
    start_s: float
    bytes: int
    """Of one that was cut: those that were acknowledged."""
    completion_s: float
    """From when the application asked, before the handshake, to the last ACK."""
    retransmits: int = 0
    ran_s: float | None = None
    """From its first data segment to the last ACK, or to the cut; None where the runtime does not know."""
    packets: int | None = None
    """Segments with data or FIN that its sender sent, retransmissions too."""
    complete: bool = True
    slowdown: float | None = None
    """`completion_s` over the least that any TCP could take there (`measures.least_s`); None where that is not known."""


@dataclass
class SeriesPoint:
    """One value of a time series. Metrics: `cwnd_packets`, `ssthresh_packets`, `goodput_bps`, `srtt_ms` (of a flow), `queue_packets`
    (of a flow at the bottleneck, or of a port as flow `""`), `throughput_bps` (of a port), and the program's: `LabPart.series_metrics`."""

    t_s: float
    flow: str
    metric: str
    value: float


@dataclass
class RunResult:
    """Everything of one run."""

    flows: list[FlowResult]
    ports: list[PortResult]
    transfers: list[Transfer] = field(default_factory=list[Transfer])
    series: list[SeriesPoint] = field(default_factory=list[SeriesPoint])
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The controller's event log, with `t_s`."""
    virtual_s: float = 0.0
    wall_s: float = 0.0
    cpu_s: float | None = None
    """Processor time, of all its processes; None where it was not measured."""
    packets: int = 0
    """Packets that went through a switch's pipeline; 0 when unknown."""
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the runner knows of itself: kernel, offloads, versions, variants by host, resolved options."""
    values: dict[str, float] = field(default_factory=dict[str, float])
    """Metrics of the program (`programs/part.py`), and in virtual time how the flows share the line as time goes on (`sim/sharing.py`)."""
    vcs: list[VcResult] = field(default_factory=list[VcResult])
    """In the scenario's order, without those that never count."""
    cut_s: float | None = None
    """What is counted begins here, seconds; None: at the end of the scenario's warm-up."""
    steady: bool | None = None
    """Whether it was in a steady state by then; None where that is not looked at."""
    capture_problems: list[str] = field(default_factory=list[str])
    """Captures that are not whole."""
