# SPDX-License-Identifier: Apache-2.0
"""What may be wrong with what an experiment file says of VCs, their flows, and the control of program `gfr`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fairlane_lab.definition.schema import Body
from fairlane_lab.definition.topology import Resolved
from fairlane_lab.problems import Problem, unknown
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Control as ScenarioControl
from fairlane_lab.scenario import Scenario
from fairlane_lab.sim.world import run_state_of

from ..check import problems_of
from ..names import PROGRAM
from .config import Control, gfr_config
from .vcs import packet_bytes

PATHS = {
    "control.capacity": "vcs",
    "control.rate_period": "control.rate_period_us",
    "control.queues": "control.scheduler",
}
"""Where an experiment file has what the controller's configuration has elsewhere."""


def gfr_problems(body: Body, topology: Resolved) -> list[Problem]:
    """What is wrong with a point's VCs, flows and control: what only the lab knows, and what the controller would refuse."""
    control: Control = body.control
    flows = tuple(body.flows)
    about = ScenarioControl(control.scheme, settings=control)
    duration_s, warmup_s = body.run.duration_s, body.run.warmup_s
    scenario = Scenario("", "", {}, {}, flows, duration_s, warmup_s, PROGRAM, body.tcp, about, vcs=body.vcs)
    return [*_control(control, body), *_flows(scenario), *_refused(scenario, topology)]


def _control(control: Control, body: Body) -> Iterable[Problem]:
    if not body.vcs:
        yield Problem("vcs", "program 'gfr' needs VCs: [[vcs]] with name and mcr_bps")
    if control.wrr_weights == "mcr":
        queues = (control.scheme, control.scheduler)
        if queues != ("pervc_threshold", "wrr") or not all(vc.mcr_bps for vc in body.vcs):
            text = '"mcr" is for scheme = "pervc_threshold" with scheduler = "wrr" only, and for VCs with an mcr_bps above 0'
            yield Problem("control.wrr_weights", text)


def _flows(scenario: Scenario) -> Iterable[Problem]:
    vcs = {vc.name: vc for vc in scenario.vcs}
    owner: dict[str, str] = {}
    for index, flow in enumerate(scenario.flows):
        at = f"flows[{index}]"
        if flow.vc not in vcs:
            yield Problem(f"{at}.vc", unknown("VC", flow.vc, vcs) if flow.vc else f"must be given: {', '.join(vcs)}")
            continue
        first, longest = owner.setdefault(flow.sender, flow.vc), packet_bytes(scenario, flow)
        if first != flow.vc:
            yield Problem(f"{at}.vc", f"{flow.sender} is in VC {first!r} already: all flows of a host are in one VC")
        if longest > vcs[flow.vc].mfs_bytes:
            text = f"its packets of {longest} bytes are longer than mfs_bytes {vcs[flow.vc].mfs_bytes} of {flow.vc}: all would be dropped"
            yield Problem(f"{at}.vc", text)
        if flow.weight != 1.0:
            yield Problem(f"{at}.weight", "program 'gfr' has no weights of flows: a VC has an MCR")


def _refused(scenario: Scenario, topology: Resolved) -> Iterable[Problem]:
    """What the controller would refuse, with the file's keys."""
    try:
        config = gfr_config(scenario, topology.checked)
    except RunError as error:
        yield Problem("topology", str(error).removeprefix(": "))
        return
    run = run_state_of(topology.checked, [port.place for port in config.ports], PROGRAM)
    for text in problems_of(config, run):
        key, _, message = text.partition(": ")
        path = re.sub(r"^ports\[\d+\]", "control", key).replace(".pcr", ".pcr_bps")
        yield Problem(PATHS.get(path, path), message)
