# SPDX-License-Identifier: Apache-2.0
"""One port in detail: its policies and measurements in two lines, its flows or VCs in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairlane_controller.live.model import FlowRow, PortRow, Snapshot, VcRow
from fairlane_controller.live.terminal import shapes
from fairlane_controller.units import format_size, format_time


def _time(seconds: float) -> str:
    return format_time(float(f"{seconds:.3g}"))


def _plain(value: float) -> str:
    return f"{value:g}"


def _bytes(value: float) -> str:
    return format_size(round(value))


_MEASURED: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("bw_bps", "BW", shapes.rate),
    ("n_c", "N_C", _plain),
    ("t_res_s", "T_res", _time),
    ("tau_s", "τ", _time),
    ("t_ack_s", "T_ACK", _time),
    ("l_d_bytes", "L_D", _bytes),
)
Row = TypeVar("Row", FlowRow, VcRow)
STALE_S = 3.0
"""An older measurement is shown in yellow."""


def describe(row: PortRow, width: int) -> list[Text]:
    """Policies and what is measured."""
    lines: list[Text] = []
    if row.scheme is not None:
        text = Text(f"{row.scheme}: QT {shapes.count(row.waiting_cells)} cells", no_wrap=True, overflow="ellipsis")
        for name, value in (
            ("LBO", row.lbo_cells),
            ("HBO", row.hbo_cells),
            ("QMAX", row.capacity_cells),
            ("N", row.active_vcs),
        ):
            if value is not None:
                text.append(f" · {name} {value:,}")
        lines.append(text)
    for policy in row.policies[:2]:
        text = Text(f"class {policy.traffic_class}: {policy.scheme}", no_wrap=True, overflow="ellipsis")
        if policy.scheme == "qthresh":
            text.append(f" {policy.qthresh_packets} packets", "bold yellow")
            text.append(
                f", {policy.mode or 'set'}" + (f", k {policy.k:g}" if policy.k and policy.mode == "auto" else "")
            )
            if policy.weight != 1.0:
                text.append(f", weight {policy.weight:g} → {policy.effective_packets}")
        lines.append(text)
    if len(row.policies) > 2:
        lines[-1].append(f" · {len(row.policies) - 2} more classes", "dim")
    if row.measured is not None:
        lines.append(_measured(row.measured, width))
    return lines


def _measured(measured: Mapping[str, Any], width: int) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    for key, name, form in _MEASURED:
        got = measured.get(key)
        if not isinstance(got, Mapping) or got.get("value") is None:  # pyright: ignore[reportUnknownMemberType]
            if key in measured and key not in ("tau_s", "t_ack_s"):
                text.append(" · " if text else "").append(f"{name} -", "dim")
            continue
        value: Any = got  # pyright: ignore[reportUnknownVariableType]
        text.append(" · " if text else "").append(f"{name} {form(value['value'])}")
        old = value.get("age_s")
        if old is not None and (width >= 100 or float(old) >= 1.0):
            text.append(f" ({shapes.age(float(old))})", "yellow" if float(old) > STALE_S else "dim")
    return text


def rows_of(snapshot: Snapshot, row: PortRow, width: int, room: int | None) -> list[RenderableType]:
    """The port's VCs, or its flows; at most `room` lines besides the header (None: all)."""
    vcs = snapshot.vcs_of(row)
    if vcs:
        vcs = tuple(sorted(vcs, key=lambda vc: -(vc.goodput_bps or 0.0)))
        return _fit(vcs, room, lambda shown: _vc_table(shown, width))
    flows = snapshot.flows_of(row)
    if not flows:
        return [
            Text("no flow has an entry here" if row.managed else "flows are told apart on managed ports only", "dim")
        ]
    total = sum(flow.goodput_bps or 0.0 for flow in flows)
    return _fit(flows, room, lambda shown: _flow_table(shown, total, width))


def _fit(rows: tuple[Row, ...], room: int | None, table: Callable[[tuple[Row, ...]], Table]) -> list[RenderableType]:
    if room is None or len(rows) <= room:
        return [table(tuple(sorted(rows, key=lambda row: row.slot or 0)))]  # rows that stay where they are
    shown = rows[: max(1, room - 1)]
    return [table(shown), Text(f"… and {len(rows) - len(shown)} more, which send less", "dim")]


def _table(columns: tuple[tuple[str, str], ...]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=False)
    for name, justify in columns:
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")  # pyright: ignore[reportArgumentType]
    return table


def _flow_table(flows: tuple[FlowRow, ...], total_bps: float, width: int) -> Table:
    name_width = 31 if width < 100 else 44
    bar_width = max(17, min(40, width - name_width - 42))
    table = _table(
        (
            ("flow", "left"),
            ("queue ┃ threshold", "left"),
            ("", "right"),
            ("goodput", "right"),
            ("share", "right"),
            ("drops/s", "right"),
        )
    )
    full = 1.25 * max([max(flow.waiting_packets or 0, flow.qthresh_packets or 0) for flow in flows] + [4])
    for flow in flows:
        name = f"{flow.src}:{flow.src_port} > {flow.dst}:{flow.dst_port}"
        if flow.vid:
            name += f" vlan {flow.vid}"
        if width >= 100:
            name = f"{flow.protocol} {name}"
        marks = {float(flow.qthresh_packets): "bold yellow"} if flow.qthresh_packets else {}
        threshold = "-" if flow.qthresh_packets is None else str(flow.qthresh_packets)
        share = None if flow.goodput_bps is None or total_bps <= 0 else flow.goodput_bps / total_bps
        table.add_row(
            Text(_middle(name, name_width)),
            shapes.bar(flow.waiting_packets, full, bar_width, marks=marks),
            f"{shapes.count(flow.waiting_packets)}/{threshold}",
            shapes.rate(flow.goodput_bps, unit=width >= 100),
            shapes.percent(share),
            Text(shapes.per_second(flow.drops_per_s), "red" if flow.drops_per_s else ""),
        )
    return table


def _vc_table(vcs: tuple[VcRow, ...], width: int) -> Table:
    name_width = 12 if width < 100 else 20
    bar_width = max(6, min(40, width - name_width - 62))
    table = _table(
        (("VC", "left"), ("queue", "left"), ("Q_i", "right"), ("MCR", "right"), ("w_i", "right"), ("r_i", "right"), ("goodput", "right"), ("drops/s", "right"))
    )  # fmt: skip
    full = 1.1 * max([vc.waiting_cells or 0 for vc in vcs] + [10])
    for vc in vcs:
        idle = vc.active is False
        table.add_row(
            Text(f"{'○' if idle else '●'} {_middle(vc.vc, name_width - 2)}", "dim" if idle else ""),
            shapes.bar(vc.waiting_cells, full, bar_width),
            shapes.count(vc.waiting_cells),
            shapes.rate(vc.mcr_bps, unit=width >= 100),
            shapes.rate(vc.w_bps, unit=width >= 100),
            shapes.rate(vc.rate_bps, unit=width >= 100),
            shapes.rate(vc.goodput_bps, unit=width >= 100),
            Text(shapes.per_second(vc.drops_per_s), "red" if vc.drops_per_s else ""),
        )
    return table


def _middle(text: str, width: int) -> str:
    """The text in `width` columns, its middle left out where it is longer."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
