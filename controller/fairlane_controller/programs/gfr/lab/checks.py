# SPDX-License-Identifier: Apache-2.0
"""What may be wrong with what an experiment file says of VCs, their flows, and the control of program `gfr`."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane_lab.definition.body import Body
from fairlane_lab.definition.topology import Resolved
from fairlane_lab.problems import Problem, place, unknown
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario

from ..model import cells_of_packet
from . import Control
from .ideal import packet_bytes
from .ways import gfr_ports, senders_of


def gfr_problems(body: Body, topology: Resolved) -> list[Problem]:
    """What is wrong with a point's VCs, flows and control."""
    scenario = _stub(body)
    problems = [*_control(body), *_vcs(body), *_flows(scenario)]
    return problems or [*_ports(body, scenario, topology)]


def _control(body: Body) -> Iterable[Problem]:
    control: Control = body.control
    if not control.lbo_cells < control.hbo_cells:
        yield Problem("control.lbo_cells", f"{control.lbo_cells} is not below hbo_cells {control.hbo_cells}")
    if not control.hbo_cells < control.qmax_cells:
        yield Problem("control.hbo_cells", f"{control.hbo_cells} is not below qmax_cells {control.qmax_cells}")
    for key in ("rate_alpha", "rate_period_us"):
        if key in control.model_fields_set and control.rate_form != "alpha":
            yield Problem(f"control.{key}", 'counts with rate_form = "alpha" only')
    if control.wrr_weights == "mcr":
        if (control.scheme, control.scheduler) != ("pervc_threshold", "wrr"):
            yield Problem(
                "control.wrr_weights",
                '"mcr" is for scheme = "pervc_threshold" with scheduler = "wrr" only: the others admit by w_i',
            )
        if not all(vc.mcr_bps for vc in body.vcs):
            yield Problem("control.wrr_weights", '"mcr" needs an mcr_bps above 0 of every VC')


def _vcs(body: Body) -> Iterable[Problem]:
    if not body.vcs:
        yield Problem("vcs", "program 'gfr' needs VCs: [[vcs]] with name and mcr_bps")
    names = [vc.name for vc in body.vcs]
    for index, vc in enumerate(body.vcs):
        path = ("vcs", index)
        if vc.name in names[:index]:
            yield Problem(place((*path, "name")), f"{vc.name!r} is the name of an earlier VC")
        if vc.pcr_bps and vc.pcr_bps < vc.mcr_bps:
            yield Problem(place((*path, "pcr_bps")), f"{vc.pcr_bps} is below mcr_bps {vc.mcr_bps}")
        longest = cells_of_packet(vc.mfs_bytes)
        if vc.mbs_cells < longest:
            text = f"{vc.mbs_cells} cells hold no frame of mfs_bytes {vc.mfs_bytes}: at least {longest}"
            yield Problem(place((*path, "mbs_cells")), text)
        if not any(flow.vc == vc.name for flow in body.flows):
            yield Problem(place((*path, "name")), f"no flow is in VC {vc.name!r}")


def _flows(scenario: Scenario) -> Iterable[Problem]:
    vcs = {vc.name: vc for vc in scenario.vcs}
    owner: dict[str, str] = {}
    for index, flow in enumerate(scenario.flows):
        path = ("flows", index, "vc")
        if flow.vc not in vcs:
            yield Problem(place(path), unknown("VC", flow.vc, vcs) if flow.vc else f"must be given: {', '.join(vcs)}")
            continue
        first = owner.setdefault(flow.sender, flow.vc)
        if first != flow.vc:
            text = f"{flow.sender} is in VC {first!r} already: all flows of a host are in one VC"
            yield Problem(place(path), text)
        longest = packet_bytes(scenario, flow)
        if longest > vcs[flow.vc].mfs_bytes:
            text = f"its packets of {longest} bytes are longer than mfs_bytes {vcs[flow.vc].mfs_bytes} of {flow.vc}: all would be dropped"
            yield Problem(place(path), text)
        if flow.weight != 1.0:
            yield Problem(place(("flows", index, "weight")), "program 'gfr' has no weights of flows: a VC has an MCR")


def _ports(body: Body, scenario: Scenario, topology: Resolved) -> Iterable[Problem]:
    """Call admission, and buffers."""
    document = topology.checked
    try:
        ports = gfr_ports(scenario, document)
    except RunError as error:
        yield Problem("topology", str(error))
        return
    crossing = {name for port in ports.values() for name in port.vcs}
    for index, vc in enumerate(scenario.vcs):
        if vc.name not in crossing:
            yield Problem(place(("vcs", index, "name")), f"{vc.name} crosses no managed port: nothing would limit it")
        for link in document.links:
            if {link.a.node, link.b.node} & set(senders_of(scenario, vc)) and vc.mfs_bytes > link.mtu:
                text = f"{vc.mfs_bytes} is above the MTU of link {link.name} ({link.mtu})"
                yield Problem(place(("vcs", index, "mfs_bytes")), text)
    qmax = body.control.qmax_cells
    for (switch, number), port in ports.items():
        buffer = document.ports[switch][number].port_cells
        if buffer is not None and qmax > buffer:
            text = f"{qmax} is above the buffer of {switch}-p{number} (port_cells {buffer})"
            yield Problem("control.qmax_cells", text)
        total = sum(vc.mcr_bps for vc in scenario.vcs if vc.name in port.vcs)
        if port.capacity_bps <= 0:
            yield Problem("topology.ports", f"{switch}-p{number} has no rate: C_GFR would be unlimited")
        elif total > port.capacity_bps:
            more = total - port.capacity_bps
            text = f"the MCRs at {switch}-p{number} add up to {total} bit/s: {more:.0f} above its rate {port.capacity_bps:.0f}"
            yield Problem("vcs", text)


def _stub(body: Body) -> Scenario:
    """As much of a scenario as VCs and ways need."""
    return Scenario(
        "",
        "",
        {},
        {},
        tuple(spec.flow for spec in body.flows),
        body.run.duration_s,
        body.run.warmup_s,
        tcp=body.tcp,
        vcs=body.vcs,
    )
