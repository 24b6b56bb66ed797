# SPDX-License-Identifier: Apache-2.0
"""What an experiment file says of GFR (`[[vcs]]`, `[control]`, a flow's `vc`): checked, and as values of a scenario."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairlane_controller.programs.gfr.model import cells_of_packet

from fairlane_lab.definition.body import GFR_KEYS, Body, given
from fairlane_lab.definition.errors import Problem, place, unknown
from fairlane_lab.definition.topology import Resolved
from fairlane_lab.gfr.ideal import packet_bytes
from fairlane_lab.gfr.ways import gfr_ports, senders_of
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import App, Control, Flow, GfrOptions, Scenario, TcpOptions, Vc
from fairlane_lab.topology_scripts import fl_topology

GFR_SCHEMES = ("drop_tail", "double_epd", "dfba", "wfba", "pervc_threshold", "proposed")
QTHRESH_SCHEMES = ("drop_tail", "qthresh")
_ONLY_OF: dict[str, tuple[str, ...]] = {
    "threshold_mbs": ("pervc_threshold",),
    "dfba_z": ("dfba",),
    "dfba_alpha": ("dfba",),
    "wfba_z": ("wfba",),
    "rate_form": ("proposed",),
    "rate_alpha": ("proposed",),
}
"""Keys that one scheme alone heeds; a file that compares schemes may give them in all its points."""


def make_control(body: Body) -> Control:
    """The scenario's control."""
    spec = body.control
    gfr = GfrOptions(**spec.gfr_options()) if body.topology.program == "gfr" else None
    return Control(spec.scheme, spec.threshold, spec.measure, spec.probes, gfr)


def make_vcs(body: Body) -> tuple[Vc, ...]:
    """The scenario's VCs."""
    return tuple(Vc(**vc.model_dump()) for vc in body.vcs)


def control_columns(body: Body) -> dict[str, Any]:
    """What the switch does, as columns of the results: `scheme`, `threshold`, and with program `gfr` also its scheduler, LBO and HBO."""
    control = make_control(body)
    columns: dict[str, Any] = {
        "scheme": control.scheme,
        "threshold": control.threshold if control.scheme == "qthresh" else None,
    }
    if control.gfr is not None:
        columns |= {"scheduler": control.gfr.scheduler, "lbo_cells": control.gfr.lbo_cells}
        columns |= {"hbo_cells": control.gfr.hbo_cells}
    return columns


def gfr_problems(body: Body, topology: Resolved) -> list[Problem]:
    """What is wrong with a point's VCs, flows and control, as far as the program decides it."""
    if body.topology.program == "gfr":
        problems = [*_control(body), *_vcs(body), *_flows(body)]
        return problems or [*_ports(body, topology)]
    return list(_not_gfr(body))


def _not_gfr(body: Body) -> Iterable[Problem]:
    hint = 'is for program "gfr" (topology.program)'
    if body.topology.program == "ena":
        if body.control.scheme == "qthresh":
            yield Problem("control.scheme", "got 'qthresh'; program 'ena' has: drop_tail")
        if body.control.measure:
            yield Problem("control.measure", "is for program 'qthresh': ena has no control loop")
    if body.control.scheme not in QTHRESH_SCHEMES:
        text = f"got {body.control.scheme!r}, which {hint}; program 'qthresh' has: {', '.join(QTHRESH_SCHEMES)}"
        yield Problem("control.scheme", text)
    for name in body.control.gfr_options():
        yield Problem(place(("control", name)), hint)
    if body.vcs:
        yield Problem("vcs", hint)
    for index, flow in enumerate(body.flows):
        if flow.vc:
            yield Problem(place(("flows", index, "vc")), hint)


def _control(body: Body) -> Iterable[Problem]:
    control = body.control
    if control.scheme not in GFR_SCHEMES:
        text = f"got {control.scheme!r}; program 'gfr' has: {', '.join(GFR_SCHEMES)}"
        yield Problem("control.scheme", text)
        return
    if "threshold" in control.model_fields_set or control.measure:
        key = "threshold" if "threshold" in control.model_fields_set else "measure"
        yield Problem(place(("control", key)), "is for program 'qthresh'")
    options = GfrOptions(**control.gfr_options())
    if not options.lbo_cells < options.hbo_cells:
        text = f"{options.lbo_cells} is not below hbo_cells {options.hbo_cells}"
        yield Problem("control.lbo_cells", text)
    if not options.hbo_cells < options.qmax_cells:
        yield Problem("control.hbo_cells", f"{options.hbo_cells} is not below qmax_cells {options.qmax_cells}")
    if control.rate_alpha is not None and options.rate_form != "alpha":
        yield Problem("control.rate_alpha", 'counts with rate_form = "alpha" only')


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


def _flows(body: Body) -> Iterable[Problem]:
    vcs = {vc.name: vc for vc in body.vcs}
    owner: dict[str, str] = {}
    for index, flow in enumerate(body.flows):
        path = ("flows", index, "vc")
        if flow.vc not in vcs:
            yield Problem(place(path), unknown("VC", flow.vc, vcs) if flow.vc else f"must be given: {', '.join(vcs)}")
            continue
        first = owner.setdefault(flow.sender, flow.vc)
        if first != flow.vc:
            text = f"{flow.sender} is in VC {first!r} already: all flows of a host are in one VC"
            yield Problem(place(path), text)
        longest = packet_bytes(
            _stub(body), Flow(flow.name, "", "", "", app=App(**given(flow.app)), tcp=given(flow.tcp))
        )
        if longest > vcs[flow.vc].mfs_bytes:
            text = f"its packets of {longest} bytes are longer than mfs_bytes {vcs[flow.vc].mfs_bytes} of {flow.vc}: all would be dropped"
            yield Problem(place(path), text)
        if flow.weight != 1.0:
            yield Problem(place(("flows", index, "weight")), "program 'gfr' has no weights of flows: a VC has an MCR")


def _ports(body: Body, topology: Resolved) -> Iterable[Problem]:
    """Call admission, and buffers."""
    scenario = _stub(body)
    document = fl_topology.check(topology.document)
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
    qmax = (make_control(body).gfr or GfrOptions()).qmax_cells
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
    flows = tuple(
        Flow(flow.name, flow.reported_group, flow.sender, flow.receiver, app=App(**given(flow.app)), tcp=given(flow.tcp), vc=flow.vc)
        for flow in body.flows
    )  # fmt: skip
    return Scenario(
        "",
        "",
        {},
        {},
        flows,
        body.run.duration_s,
        body.run.warmup_s,
        tcp=TcpOptions(**given(body.tcp)),
        vcs=make_vcs(body),
    )


__all__ = ["GFR_KEYS", "control_columns", "gfr_problems", "make_control", "make_vcs"]
