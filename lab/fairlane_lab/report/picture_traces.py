# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""The same sender's window in the simulator and in the kernel, one over the other: a panel for each point."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from fairlane_lab.report.canvas import Legend, finish, grid
from fairlane_lab.report.picture_series import thin
from fairlane_lab.report.run_folder import ordered
from fairlane_lab.report.style import PALETTE, mark
from fairlane_lab.report.traces import Trace

_COLOURS = {"sim": PALETTE[0], "mininet": PALETTE[1]}


def draw_traces(traces: Sequence[Trace], title: str = "") -> Figure:
    """Draw the traces of flows that are alone on their link; the time that all runtimes of a panel have is shown."""
    panels = ordered((trace.point, trace.flow) for trace in traces)
    figure, axes = grid(len(panels), 1, 1.9, sharex=False)
    legend = Legend()
    for row, (point, flow) in enumerate(panels):
        axis = axes[row][0]
        mine = [trace for trace in traces if (trace.point, trace.flow) == (point, flow)]
        end = min(float(trace.t_s[-1]) for trace in mine)
        for trace in mine:
            kept = trace.t_s <= end
            colour = _COLOURS.get(trace.runtime, PALETTE[2])
            times, values = thin(trace.t_s[kept], trace.cwnd[kept])
            axis.plot(times, values, color=colour, lw=1.1, drawstyle="steps-post", alpha=0.9)
            legend.line("Linux (Mininet)" if trace.runtime == "mininet" else mark(trace.runtime).label, colour)
        axis.set_title(point if point == flow else f"{point} · {flow}")
        axis.set_ylabel("cwnd (packets)")
        axis.set_ylim(bottom=0)
        axis.margins(x=0.01)
        if row == len(panels) - 1:
            axis.set_xlabel("time (s)")
    return finish(figure, legend, title)
