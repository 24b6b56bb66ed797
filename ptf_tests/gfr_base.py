# SPDX-License-Identifier: GPL-2.0-or-later
"""GfrTest: what every PTF test of gfr.p4 starts from: VCs by source address, marks by DSCP, verdicts against the oracle.

VC i (1..6) is what comes from 10.0.1.i at port 1, in slot i and queue i; DSCP 12 is CLP 1. Everything else is of no VC.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import finsy as fy

from base import REASON_PORT_FULL, SERVICE_S, SLOW_PORT, SLOW_RATE_BPS, LaneTest
from client import TimedOut
from gfr_oracle import Moment, Verdict, cells
from packets import FiveTuple, frame, ipv4

REASON_GFR, REASON_PCR, REASON_MFS = 13, 14, 15
FAST_PORT = 2
VCS = range(1, 7)
NO_VC = 0
MARKED_DSCP = 12
"""AF12."""
PLAIN_DSCP = 10
"""AF11."""
NO_VC_SLOT = 4096
NEVER_FAST = (1 << 40) - 1
ALWAYS_FAST = 0
"""As w_i: any VC that had a frame accepted is faster."""
HOLD_RATE_BPS = 1000
HOLD_S = 0.8
"""What a frame of 100 bytes takes then: four times the time in which BMv2 holds its line."""
RELEASE_RATE_BPS = 1_000_000
ONE_CELL = 54
"""A frame without payload: 40 bytes and the trailer."""


def fixed(value: Fraction | float) -> int:
    """In 1/65536, rounded; what does not fit in 32 bits is as large as can be."""
    return min(round(value * 65536), 0xFFFFFFFF)


@dataclass(frozen=True)
class SentFrame:
    """A frame for the port under test."""

    vc: int
    clp: int = 0
    length: int = ONE_CELL

    @property
    def slot(self) -> int:
        return self.vc or NO_VC_SLOT + SLOW_PORT

    @functools.cache  # noqa: B019  (few, and alike in many tests)
    def frame_to(self, port: int, fill: int = 0) -> bytes:
        """The frame for a port, as its host sends it; `fill` makes it different from others."""
        host = self.vc or 99
        five_tuple = FiveTuple(ipv4(1, host), ipv4(port), src_port=1024 + fill)
        return bytes(frame(five_tuple, self.length, dscp=MARKED_DSCP if self.clp else PLAIN_DSCP, fill=fill % 256))


class GfrTest(LaneTest):
    """VCs 1 to 6 by source address, with a share at the slow port and at port 2."""

    WAITING_REGISTER = "port_cells"
    REFUSALS = (REASON_PORT_FULL, REASON_GFR, REASON_PCR, REASON_MFS)

    def setUp(self) -> None:
        super().setUp()
        if self.is_embedded:
            self.set_rate(SLOW_RATE_BPS)
        self._known_verdicts: dict[int, Counter[tuple[int, int, Verdict]]] = {}
        self.insert("clp_mark", {"dscp": f"{MARKED_DSCP}/&0x3f"}, "set_clp", priority=1, clp=1)
        for vc in VCS:
            self.insert("vc_classify", {"src": ipv4(1, vc) + "/&255.255.255.255"}, "set_vc", priority=1, vc=vc)

    # ---- what a controller writes ------------------------------------------------------------------

    def scheme(self, name: str, port: int = SLOW_PORT, **parameters: int) -> None:
        """`port` is managed by this scheme from now on; what is not given is 0."""
        defaults: dict[str, dict[str, int]] = {
            "drop_tail": {},
            "double_epd": {"lbo": 0, "hbo": 0},
            "dfba": {"lbo": 0, "hbo": 0, "z": 256, "alpha": 128, "inv_span": 0},
            "wfba": {"lbo": 0, "z": 256},
            "pervc_threshold": {"lbo": 0, "hbo": 0},
            "proposed": {"lbo": 0, "hbo": 0, "n": 1, "rate_form": 0, "alpha": 0, "at_arrival": 0, "period_us": 0},
        }
        values = {"qmax": 0, "per_vc_queue": 0} | defaults[name] | parameters
        if name == "dfba":
            values["inv_span"] = min(round(Fraction(1 << 32, values["hbo"] - values["lbo"])), 0xFFFFFFFF)
        match = {"egress_port": port}
        if list(self.switch.read(fy.P4TableEntry("port_scheme", match=fy.Match(**match)))):
            self.modify("port_scheme", match, name, **values)
        else:
            self.insert("port_scheme", match, name, **values)

    def share(
        self,
        vc: int,
        port: int = SLOW_PORT,
        *,
        w: int = NEVER_FAST,
        weight: int = 0,
        share: Fraction = Fraction(1, 6),
        threshold: int = 0,
        queue: int | None = None,
    ) -> None:
        """The VC's place at the port, given or changed; `share` is w_i/W."""
        values = {
            "slot": vc,
            "queue": vc if queue is None else queue,
            "w": w,
            "weight": weight,
            "share": fixed(share),
            "inv_share": fixed(1 / share),
            "inv_rest": fixed(1 / (1 - share)) if share < 1 else 0xFFFFFFFF,
            "threshold": threshold,
        }
        match = {"egress_port": port, "vc": vc}
        if list(self.switch.read(fy.P4TableEntry("vc_share", match=fy.Match(**match)))):
            self.modify("vc_share", match, "set_share", **values)
        else:
            self.insert("vc_share", match, "set_share", **values)

    def set_state(self, port: int, slot: int, qt: int, qi: int, rate: int = 0) -> None:
        """QT, Q_i and r_i (1/256 bit/s), as if so much waited (registers: embedded switch only)."""
        values = (("port_cells", port, qt), ("vc_cells", slot, qi), ("vc_rate", slot, rate))
        self.switch.write([~fy.P4RegisterEntry(name, index=index, data=value) for name, index, value in values])

    # ---- what a controller reads -------------------------------------------------------------------

    def verdicts(self, *slots: int) -> Counter[tuple[int, int, Verdict]]:
        """{(slot, CLP, verdict): packets} of the slots, where there are any."""
        entries = [fy.P4CounterEntry("vc_verdicts", index=slot << 5 | low) for slot in slots for low in range(32)]
        return Counter(
            {
                (e.index >> 5, e.index >> 4 & 1, Verdict(e.index & 15)): e.packet_count
                for e in self.switch.read(entries)
                if e.packet_count
            }
        )

    def arrival_cells(self, port: int) -> list[fy.P4CounterEntry]:
        return [*super().arrival_cells(port), fy.P4CounterEntry("admitted", index=port)]

    def assert_no_occupancy(self, *slots: int) -> None:
        """The slow port and the slots hold nothing (registers: embedded switch only; BMv2 cannot read them)."""
        if not self.is_embedded:
            return
        self.assertEqual(self.register("port_cells", SLOW_PORT), 0)
        for slot in slots:
            self.assertEqual(self.register("vc_cells", slot), 0, f"slot {slot}")

    def ask_port(self, port: int) -> dict[str, Any]:
        """What the embedded switch's control socket says of a port: options, counts, what waits."""
        return next(p for p in self.ask({"op": "ports"})["ports"] if p["port"] == port)

    # ---- frames against the oracle --------------------------------------------------------------------

    def set_rate(self, rate_bps: int) -> None:
        """Of the slow port, from the next frame on (control socket: embedded switch only)."""
        self.ask({"op": "set_port", "port": SLOW_PORT, "rate_bps": rate_bps})

    def hold_line(self, first: SentFrame) -> None:
        """This frame of 100 bytes is on the slow port's line: what comes in the next HOLD_S (BMv2: SERVICE_S) waits."""
        assert first.length == 100, first
        if self.is_embedded:
            self.set_rate(HOLD_RATE_BPS)
        self._start_line(first.frame_to(SLOW_PORT))
        if self.is_embedded and self._window_end is not None:
            self._window_end += HOLD_S - SERVICE_S

    def expect(self, rule: Callable[[Moment, SentFrame], Verdict], sent: list[SentFrame]) -> None:
        """The frames, sent into an empty queue behind a busy line, get exactly the rule's verdicts; all comes out.

        The frame that keeps the line busy is of no VC and is not counted any more.
        """
        slots = sorted({one.slot for one in sent})
        expected: Counter[tuple[int, int, Verdict]] = Counter()
        qt, qi = 0, Counter[int]()
        on_the_line = SentFrame(NO_VC, 1, 100)
        if on_the_line.slot in slots:
            expected[on_the_line.slot, 1, rule(Moment(0, 0, cells(100), 1), on_the_line)] += 1
        for one in sent:
            c = cells(one.length)
            verdict = rule(Moment(qt, qi[one.slot], c, one.clp), one)
            expected[one.slot, one.clp, verdict] += 1
            if verdict.accepted:
                qt += c
                qi[one.slot] += c
        frames = [one.frame_to(SLOW_PORT, fill) for fill, one in enumerate(sent)]
        registers = [fy.P4RegisterEntry("port_cells", index=SLOW_PORT)]
        registers += [fy.P4RegisterEntry("vc_cells", index=slot) for slot in slots]
        self.assertIsNone(self._window_end)
        before = self.verdicts(*slots)
        self.hold_line(on_the_line)
        for one in frames:
            self.dataplane.send(0, 1, one)
        self.count_sent(len(frames))
        if self.is_embedded:
            held = [entry.data for entry in self.switch.read(registers)]
            self.settle()
            self.assertEqual(held, [qt] + [qi[slot] for slot in slots], f"cells of the port and of {slots}")
            self.set_rate(RELEASE_RATE_BPS)
        self.assertEqual(self.verdicts(*slots) - before, expected)
        refused = sum(count for (_, _, verdict), count in expected.items() if not verdict.accepted)
        self.drain(1 + len(sent) - refused)
        self.assert_no_occupancy(*slots)

    def meets(self, sent: SentFrame, qt: int, qi: int, rate: int = 0, port: int = FAST_PORT) -> Verdict:
        """The verdict on one frame for an idle port that is made to believe in QT, Q_i and r_i (1/256 bit/s).

        An accepted frame leaves at once: QT and Q_i are again what they were, exactly.
        """
        slot = sent.vc or NO_VC_SLOT + port
        state = [fy.P4RegisterEntry("port_cells", index=port), fy.P4RegisterEntry("vc_cells", index=slot)]
        before = self._known_verdicts.get(slot) or self.verdicts(slot)
        self.set_state(port, slot, qt, qi, rate)
        self.dataplane.send(0, 1, sent.frame_to(port))
        deadline = time.monotonic() + 5.0
        while (after := self.verdicts(slot)) == before:
            if time.monotonic() > deadline:
                raise TimedOut(f"{sent} at port {port}: not handled within 5 s")
        self._known_verdicts[slot] = after
        ((_, clp, verdict),) = (after - before).elements()
        assert clp == sent.clp, f"{sent} was counted with CLP {clp}"
        if verdict.accepted:
            assert self.receive_any(port, timeout_s=3.0), f"{sent}: {verdict.name}, but it did not come out"
        self.assertEqual([entry.data for entry in self.switch.read(state)], [qt, qi])
        return verdict
