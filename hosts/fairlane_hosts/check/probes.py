# SPDX-License-Identifier: Apache-2.0
"""The trials of the self-test: each makes one variant show what defines it, on the wire, and says what was seen; their run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .. import loader
from ..errors import HostsError
from ..variants import Variant
from . import results
from .bed import MSS_BYTES, CheckBed
from .gate import GateSegment
from .results import Result

Probe = Callable[[CheckBed, Variant], str]
"""Returns what was seen in a few words. Raises HostsError when the variant does not do what defines it."""

SOME_BYTES = 30 * MSS_BYTES
MANY_BYTES = 120 * MSS_BYTES
PASSED = 20
"""Segments that pass before something happens."""
QUIET_S = 0.06
TIMER_S = 4.0
MRTO_MAX_US = 60_000
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


def _expect(true: bool, otherwise: str) -> None:
    if not true:
        raise HostsError("check", otherwise)


def runs(bed: CheckBed, variant: Variant) -> str:
    """A host's sockets run it, and it carries data."""
    note, cc = "", None
    try:
        bed.use(variant)
    except HostsError as error:
        if not variant.builtin or error.kind != "sysctl" or variant.congestion_control in _ALLOWED.read_text().split():
            raise
        note, cc = " (of one socket: as a host's default the kernel wants its name allowed)", variant.congestion_control
    bed.begin()
    found = bed.connect(cc)
    _expect(found == variant.congestion_control, f"a socket of the host uses {found}, not {variant.congestion_control}")
    bed.send(SOME_BYTES)
    bed.wait_drained(SOME_BYTES)
    return f"a socket uses {found}{note}"


def _first_flight(bed: CheckBed, variant: Variant) -> tuple[int, int]:
    """(segments, bytes) sent before any ACK for data."""
    bed.use(variant)
    bed.begin(lambda seen: "hold" if not seen.to_receiver and seen.number else "pass")
    bed.connect()
    bed.send(MANY_BYTES)
    bed.gate.wait(lambda log: any(s.length for s in log) or None, 5, "data")
    bed.gate.wait_quiet(QUIET_S, 5)
    flight = [s for s in bed.gate.log() if s.new]
    bed.gate.open()
    bed.wait_drained(MANY_BYTES)
    return len(flight), sum(s.length for s in flight)


def initial_window(bed: CheckBed, variant: Variant) -> str:
    """It starts with as many packets as its definition says."""
    wanted = variant.defines["FL_INITIAL_WINDOW"]
    segments, _ = _first_flight(bed, variant)
    _expect(segments == wanted, f"its first flight is {segments} segments, not {wanted}")
    return f"first flight of {segments}"


def whole_window(bed: CheckBed, variant: Variant) -> str:
    """NSS: the first flight is the advertised window."""
    segments, bytes = _first_flight(bed, variant)
    window = max((s.window for s in bed.gate.log() if not s.to_receiver and s.number == 0), default=0)
    _expect(
        window - 2 * MSS_BYTES < bytes <= window,
        f"its first flight is {bytes} bytes where {window} are advertised",
    )
    return f"first flight of {segments}, {bytes} of {window} bytes advertised"


def _data(log: Sequence[GateSegment]) -> list[GateSegment]:
    return [s for s in log if s.to_receiver and s.length]


def _send_until_timeout(bed: CheckBed, variant: Variant, what: str) -> tuple[int, int]:
    """Send, let `PASSED` segments through, `what` ("hold", "drop") happens to the others; until nothing more is sent.

    Returns the length of the log and how many spurious timeouts the kernel had counted.
    """
    bed.use(variant)

    def rule(seen: GateSegment) -> str:
        late = seen.number > PASSED and (what == "hold" or seen.to_receiver)
        return what if late else "pass"

    bed.begin(rule)
    bed.connect()
    before = bed.info()["netstat"].get("TCPSpuriousRTOs", 0)
    bed.send(MANY_BYTES)
    bed.gate.wait(lambda log: any(s.number > PASSED for s in log) or None, 5, "the segment that is to be late")
    bed.gate.wait_quiet(QUIET_S, 5)
    return len(bed.gate.log()), before


def _next_data(bed: CheckBed, after: int, what: str) -> GateSegment:
    return bed.gate.wait(lambda log: next(iter(_data(log[after:])), None), TIMER_S, what)


def _spurious(bed: CheckBed, variant: Variant, new_at_timer: bool) -> None:
    quiet, before = _send_until_timeout(bed, variant, "hold")
    by_timer = _next_data(bed, quiet, "what the retransmission timer sends")
    _expect(by_timer.new == new_at_timer, f"the timer sent {'new data' if by_timer.new else 'the head again'}")
    bed.gate.open()
    info = bed.wait_drained(MANY_BYTES)
    log = bed.gate.log()
    again = [s for s in _data(log) if not s.new and s.seq != by_timer.seq]
    _expect(not again, f"{len(again)} segments were sent twice after a timeout for nothing")
    undone = info["netstat"].get("TCPSpuriousRTOs", 0) - before
    _expect(undone >= 1, "the kernel did not find the timeout spurious (TCPSpuriousRTOs stays)")


def erto_spurious(bed: CheckBed, variant: Variant) -> str:
    """E-RTO and BCR: a timeout for nothing sends new data, and nothing is sent twice."""
    _spurious(bed, variant, new_at_timer=True)
    return "spurious timeout: new data, nothing twice, undone"


def frto_spurious(bed: CheckBed, variant: Variant) -> str:
    """F-RTO: a timeout for nothing sends the head, and nothing else twice."""
    _spurious(bed, variant, new_at_timer=False)
    return "spurious timeout: the head, nothing else twice, undone"


def erto_real(bed: CheckBed, variant: Variant) -> str:
    """E-RTO and BCR: after a real loss new data, a duplicate ACK, then the head."""
    quiet, _ = _send_until_timeout(bed, variant, "drop")
    head = next(s for s in _data(bed.gate.log()) if s.number > PASSED)
    bed.gate.open()  # before the timer, or after its first new segment was lost as well
    again = bed.gate.wait(lambda log: next((s for s in _data(log[quiet:]) if not s.new), None), TIMER_S, "the head")
    since = bed.gate.log()[quiet:]
    before = since[: since.index(again)]
    _expect(bool(_data(before)), "the timer sent no new data")
    _expect(again.seq == head.seq, "the first retransmission is not the head")
    _expect(any(not s.to_receiver and s.ack == head.seq for s in before), "the head went out before a duplicate ACK")
    bed.wait_drained(MANY_BYTES)
    return "real timeout: new data, duplicate ACK, head"


def low_rto(bed: CheckBed, variant: Variant) -> str:
    """MRTO: the retransmission timeout is near the RTT."""
    bed.use(variant)
    bed.begin()
    bed.connect()
    bed.send(SOME_BYTES)
    info = bed.wait_drained(SOME_BYTES)
    seen = f"RTO {info['rto_us'] / 1000:.0f} ms at an RTT of {info['rtt_us'] / 1000:.1f} ms"
    _expect(info["rto_us"] <= MRTO_MAX_US + 2 * info["rtt_us"], seen)
    return seen


def first_duplicate(bed: CheckBed, variant: Variant) -> str:
    """FST1: one duplicate ACK is enough for a retransmission."""
    bed.use(variant)
    state = {"dropped": -1, "duplicates": 0}

    def rule(seen: GateSegment) -> str:
        if seen.to_receiver:
            if seen.new and seen.number == PASSED:
                state["dropped"] = seen.seq
                return "drop"
            return "pass"
        if seen.ack == state["dropped"] and seen.number > PASSED:
            state["duplicates"] += 1
            return "pass" if state["duplicates"] <= 2 else "hold"  # the ACK itself, and one duplicate
        return "pass"

    bed.begin(rule)
    bed.connect()
    bed.send(MANY_BYTES)
    bed.gate.wait(
        lambda log: next((s for s in _data(log) if not s.new), None),
        0.15,
        "a retransmission at the first duplicate ACK",
    )
    bed.gate.open()
    bed.wait_drained(MANY_BYTES)
    return "retransmits at the first duplicate ACK"


def error_notification(bed: CheckBed, variant: Variant) -> str:
    """ENA: a corrupted segment is named in the next ACK, repaired, and the window is kept."""
    bed.use(variant)
    before = bed.counters("sender", "ena")
    state = {"corrupted": -1}

    def rule(seen: GateSegment) -> str:
        if seen.new and seen.number == PASSED:
            state["corrupted"] = seen.seq
            return "corrupt"
        return "pass"

    bed.begin(rule)
    bed.connect()
    bed.send(MANY_BYTES)
    named = bed.gate.wait(
        lambda log: next((s.error_seq for s in log if s.error_seq is not None), None),
        2,
        "an ACK that names the segment",
    )
    _expect(named == state["corrupted"], "the ACK names another segment than the corrupted one")
    bed.wait_drained(MANY_BYTES)
    after = bed.counters("sender", "ena")
    change = {name: after[name] - before[name] for name in after}
    _expect(change["ena_kept"] >= 1 and change["ena_reduced"] == 0, f"the window was not kept: {change}")
    return "corrupted segment named, window kept"


def probes_of(variant: Variant) -> tuple[Probe, ...]:
    """The trials of a variant, by what its row asks for, the simplest first."""
    sysctls, programs = variant.sysctls, variant.programs
    probes_tail = bool(sysctls.get("tcp_early_retrans"))  # one segment more than the window, while ACKs are held
    trials = {
        (initial_window,): "FL_INITIAL_WINDOW" in variant.defines and not probes_tail,
        (whole_window,): variant.header == "nss",
        (frto_spurious,): sysctls.get("tcp_frto") == 2 and not sysctls.get("tcp_timestamps") and "erto" not in programs,
        (erto_spurious, erto_real): "erto" in programs,
        (low_rto,): "mrto" in programs,
        (first_duplicate,): sysctls.get("tcp_reordering") == 1,
        (error_notification,): "ena" in programs,
    }
    return (runs, *(probe for probes, holds in trials.items() if holds for probe in probes))


# ---- the trials of the variants, one after the other in one network ----------------------------------------------------

TRIES = 2
"""A trial that fails is tried once more: a busy machine can be late for a timer."""


def _try(bed: CheckBed, variant: Variant, refused: Mapping[str, str]) -> Result:
    if variant.congestion_control in refused:
        return Result(variant.name, "cannot", refused[variant.congestion_control], loads=False)
    if variant.builtin and variant.congestion_control not in loader.available():
        return Result(variant.name, "absent", f"this kernel was built without {variant.congestion_control}")
    seen = list[str]()
    for probe in probes_of(variant):
        for attempt in range(TRIES):
            try:
                seen.append(probe(bed, variant))
                break
            except HostsError as error:
                if attempt == TRIES - 1:
                    return Result(variant.name, "cannot", str(error).replace("\n ", ";"))
            finally:
                bed.gate.open()
    return Result(variant.name, "ok", "; ".join(seen))


def check_variants(variants: Sequence[Variant], progress: Callable[[Variant], None]) -> list[Result]:
    """Try each variant on the running kernel; a few seconds in all. The results are kept for `use`.

    `progress` gets each variant before it is tried. Raises HostsError when nothing can be tried at all
    (`kernel-unsupported`, `not-root`, `not-built`, `name-taken`, `other-build`, `check`, …).
    """
    found, refused = list[Result](), dict[str, str]()
    loader.require(loader.check())
    with loader.acquire(loader.programs(refused_too=True), refused) as lease, CheckBed(lease) as bed:
        for variant in variants:
            progress(variant)
            found.append(_try(bed, variant, refused))
    results.write(found)
    return found
