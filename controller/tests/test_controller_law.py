# SPDX-License-Identifier: Apache-2.0
"""The law of the thresholds on plants whose flows follow it, its properties, and its edges; virtual time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from fairlane_controller.programs.qthresh import law as law_module
from fairlane_controller.programs.qthresh.law import Decision, FlowCount, LaneLength, Law, Port, Why
from fairlane_controller.programs.qthresh.names import weight_for
from law_plant import Sender, run

LINK_BPS = 2e6
MODEL = 5.7
SHORT = Port(LINK_BPS, 0.004, 0.008, 50, 3.0)
"""A path whose saw-tooth is shorter than a look."""
LONG = Port(30e6, 0.1 / 375, 0.1, 375, 5.0)


def counted(packets: float, dropped: int = 0, weight: float = 1.0) -> FlowCount:
    """So many packets of 1000 bytes admitted."""
    number = round(packets) + dropped
    return FlowCount(number, 1000 * number, dropped, 1000 * dropped, weight)


def model_of(counts: Mapping[str, FlowCount], model: float = MODEL) -> dict[str, float]:
    """(9) for each flow."""
    return {flow: model * count.weight for flow, count in counts.items()}


def look(law: Law[str], now_s: float, counts: Mapping[str, FlowCount], port: Port = SHORT) -> dict[str, Decision]:
    """With (9) of the short path; nothing at the first look."""
    return law.step(now_s, counts, port, model_of(counts)) or {}


@dataclass
class Plant:
    """A full short line: a `free` flow keeps a constant number of packets waiting whatever its threshold above that, a held one all it may."""

    free_packets: dict[str, float] = field(default_factory=dict[str, float])
    held: tuple[str, ...] = ()
    weights: dict[str, float] = field(default_factory=dict[str, float])
    sent: dict[str, float] = field(default_factory=dict[str, float])

    def step(self, seconds: float, decided: Mapping[str, Decision]) -> dict[str, FlowCount]:
        """Let time pass under these decisions; the counters after it."""
        thresholds = {flow: one.qthresh_packets or round(MODEL) for flow, one in decided.items()}
        waiting = {name: min(packets, float(thresholds.get(name, 99))) for name, packets in self.free_packets.items()}
        waiting |= {name: 0.75 * thresholds.get(name, round(MODEL)) for name in self.held}
        total = sum(waiting.values())
        for name, packets in waiting.items():
            self.sent[name] = self.sent.get(name, 0.0) + LINK_BPS / 8000 * seconds * packets / total
        return {name: counted(sent, weight=self.weights.get(name, 1.0)) for name, sent in self.sent.items()}


def run_short(plant: Plant, law: Law[str], seconds: int) -> dict[str, float]:
    """Rates in packets/s over the last half."""
    decided: dict[str, Decision] = {}
    half: dict[str, float] = {}
    for second in range(seconds + 1):
        decided = look(law, second, plant.step(1.0, decided))
        if second == seconds // 2:
            half = dict(plant.sent)
    return {name: (sent - half[name]) / (seconds - seconds // 2) for name, sent in plant.sent.items()}


# ---- short paths -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vegas_packets", [2.5, 3.3, 4.0, 5.2, 6.0])
def test_wherever_the_free_flow_froze_shares_meet(vegas_packets: float) -> None:
    rates = run_short(Plant({"vegas": vegas_packets}, held=("reno",)), Law[str](), 60)
    assert min(rates.values()) / max(rates.values()) > 0.97


def test_whole_packets_average_to_the_real_threshold() -> None:
    law, plant, seen = Law[str](), Plant({"vegas": 3.7}, held=("reno",)), list[int]()
    decided: dict[str, Decision] = {}
    for second in range(101):
        decided = look(law, second, plant.step(1.0, decided))
        if second > 60:
            seen.append(decided["reno"].qthresh_packets or 0)
    assert len(set(seen)) > 1
    assert abs(sum(seen) / len(seen) * 0.75 - 3.7) < 0.15


def test_weights_are_shares() -> None:
    rates = run_short(Plant({}, held=("one", "two"), weights={"one": 1.0, "two": 2.0}), Law[str](), 80)
    assert rates["two"] / rates["one"] == pytest.approx(2.0, rel=0.05)


def test_a_flow_that_has_next_to_nothing_of_a_full_line_wants_more() -> None:
    decided: dict[str, Decision] = {}
    law = Law[str]()
    for second in range(40):
        decided = look(law, second, {"greedy": counted(220 * second), "starved": counted(30 * second)})
    assert decided["greedy"].why is Why.TUNED
    assert decided["greedy"].qthresh_packets == 2, (
        "law.md, section 1: this flow was taken for one that asks for less, for ever"
    )


def test_a_flow_that_does_not_grow_on_an_idle_line_has_what_it_asks_for() -> None:
    decided: dict[str, Decision] = {}
    law = Law[str]()
    for second in range(20):
        decided = look(law, second, {"a": counted(100 * second), "b": counted(30 * second)})
    assert {one.why for one in decided.values()} == {Why.CONTENT}
    at = {"a": counted(100 * 20), "b": counted(30 * 20 + 60)}
    assert look(law, 20, at)["b"].why is Why.ALONE, "it has grown"


def test_a_content_flow_that_loses_it_on_a_full_line_wants_it_back() -> None:
    decided: dict[str, Decision] = {}
    law, sent = Law[str](), {"web": 0.0, "bulk": 0.0}
    for second in range(30):
        rates = {"web": 60.0, "bulk": 10.0 * second} if second < 15 else {"web": 30.0, "bulk": 220.0}
        sent = {flow: packets + rates[flow] for flow, packets in sent.items()}
        decided = look(law, second, {flow: counted(packets) for flow, packets in sent.items()})
        if second == 13:
            assert decided["web"].why is Why.CONTENT
    assert decided["web"].why is Why.TUNED
    assert (decided["bulk"].qthresh_packets or 99) < MODEL


def test_a_short_transfer_is_no_rival() -> None:
    decided: dict[str, Decision] = {}
    law = Law[str]()
    for second in range(12):
        counts = {"a": counted(125 * second), "b": counted(125 * second)}
        if second >= 10:
            counts["short"] = counted(10 * (second - 9))
        decided = look(law, second, counts)
    assert decided["short"].why is Why.YOUNG
    assert decided["a"].error == pytest.approx(0.0)


def test_what_sends_less_than_any_window_has_no_share_until_it_loses_a_packet() -> None:
    decided: dict[str, Decision] = {}
    law = Law[str]()
    for second in range(8):
        flows = {"a": counted(130 * second), "b": counted(110 * second), "messages": counted(5 * second)}
        decided = look(law, second, flows)
    assert [flow for flow, one in decided.items() if one.why is Why.TUNED] == ["a", "b"]
    flows = {"a": counted(130 * 8), "b": counted(110 * 8), "messages": counted(5 * 8, dropped=1)}
    assert look(law, 8, flows)["messages"].why is Why.TUNED


@pytest.mark.parametrize("t_res_s", [0.0, 0.005])
def test_on_a_path_shorter_than_a_packet_flows_want_their_share(t_res_s: float) -> None:
    """256 kbit/s: a packet takes 31 ms, a round trip five packets that wait."""
    decided: dict[str, Decision] = {}
    law = Law[str]()
    for second in range(8):
        decided = look(
            law, second, {"a": counted(20 * second), "b": counted(12 * second)}, Port(256e3, 0.031, t_res_s, 50, 5.0)
        )
    assert {one.why for one in decided.values()} == {Why.TUNED}


def test_pure_acks_have_no_share() -> None:
    decided: dict[str, Decision] = {}
    law = Law[str]()
    for second in range(8):
        acks = FlowCount(200 * second, 54 * 200 * second, second, 54 * second)
        decided = look(law, second, {"a": counted(130 * second), "b": counted(110 * second), "acks": acks})
    assert [flow for flow, one in decided.items() if one.why is Why.TUNED] == ["a", "b"]
    assert decided["acks"].why is Why.IDLE


def test_an_idle_flow_has_no_share() -> None:
    decided: dict[str, Decision] = {}
    law = Law[str]()
    for second in range(6):
        decided = look(law, second, {"a": counted(130 * second), "b": counted(120 * second), "idle": counted(100)})
    assert [flow for flow, one in decided.items() if one.why is Why.TUNED] == ["a", "b"]
    assert decided["idle"].why is Why.IDLE


def test_what_other_classes_take_counts_for_the_line() -> None:
    """Half the line is another class's: what is left is full, so the greedy flow's threshold falls (law.md, section 1)."""
    decided: dict[str, Decision] = {}
    for other_bps, falls in ((LINK_BPS / 2, True), (0.0, False)):
        law = Law[str]()
        port = Port(LINK_BPS, 0.004, 0.008, 50, 3.0, other_bps)
        for second in range(20):
            counts = {"a": counted(85 * second), "b": counted(40 * second)}
            decided = law.step(second, counts, port, model_of(counts)) or {}
        assert ((decided["a"].qthresh_packets or 99) < MODEL) is falls


def test_a_restarted_loop_goes_on_from_what_is_in_force() -> None:
    law, counts = Law[str](), {name: counted(10) for name in ("a", "b")}
    assert law.step(0.0, counts, SHORT, model_of(counts), {"a": 4}) is None
    again = {name: counted(135) for name in ("a", "b")}
    decided = law.step(1.0, again, SHORT, model_of(again), {"a": 9}) or {}
    assert decided["a"].exact_packets == pytest.approx(4.0, rel=0.03)
    assert decided["b"].exact_packets == pytest.approx(MODEL, rel=0.03)


def test_nothing_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    decided: dict[str, Decision] = {}
    monkeypatch.setattr(law_module, "MAX_FLOWS", 3)
    law = Law[str]()
    assert law.step(0.0, {"a": counted(10)}, SHORT, {"a": MODEL}) is None
    assert look(law, 1.0, {"a": counted(60)})["a"].why is Why.ALONE
    many = {name: counted(30) for name in "abcd"}
    for second in range(2, 8):
        decided = look(law, second, {name: counted(60 * second) for name in many})
    assert all(one.qthresh_packets is None for one in decided.values())


def test_in_an_outage_nothing_is_decided() -> None:
    """A decision that stayed would tap the same flow once more each second, and give a threshold to a flow whose entry has gone."""
    law, counts = Law[str](), dict[str, FlowCount]()
    for second in range(3):
        counts = {"big": counted(3200 * second), "small": counted(540 * second)}
        look(law, second, counts, LONG)
    assert law.last["big"].tap
    del counts["small"]
    assert law.step(3.0, counts, LONG, model_of(counts)) is None


def test_after_a_lost_connection_the_law_begins_with_a_first_step() -> None:
    """As one step, a minute in which one flow got 52 % and the other 48 % made thresholds of 2 and 19 packets."""
    law = Law[str]()
    for second in range(3):
        look(law, second, {"a": counted(125 * second), "b": counted(125 * second)})
    assert look(law, 62, {"a": counted(250 + 7800), "b": counted(250 + 7200)}) == {}
    after = look(law, 63, {"a": counted(250 + 7925), "b": counted(250 + 7325)})
    assert [one.exact_packets for one in after.values()] == [pytest.approx(MODEL, rel=0.01)] * 2


def idle_line(drops: int, law: Law[str], start: int, seconds: int, packets: int) -> dict[str, Decision]:
    """Two flows that share the line alike, `packets` a second together, and grow."""
    decided: dict[str, Decision] = {}
    for second in range(start, start + seconds):
        half = counted(packets / 2 * second, drops * second)
        decided = look(law, second, {"a": half, "b": half})
    return decided


def test_thresholds_that_leave_the_line_idle_are_lifted_and_come_back() -> None:
    law = Law[str]()
    lifted = idle_line(3, law, 0, 20, 225)["a"].exact_packets  # 90 %
    assert lifted == pytest.approx(law_module.MAX_COMMON_FACTOR * MODEL, rel=0.01)
    assert law.utilisation == pytest.approx(0.9, abs=0.01)
    assert idle_line(3, law, 20, 60, 250)["a"].exact_packets == pytest.approx(MODEL, rel=0.05)


def test_what_all_have_in_common_fades() -> None:
    decided: dict[str, Decision] = {}
    law, start = Law[str](), {"a": counted(0), "b": counted(0)}
    law.step(0.0, start, SHORT, model_of(start), {"a": 2, "b": 2})
    for second in range(1, 61):
        decided = look(law, second, {"a": counted(125 * second), "b": counted(125 * second)})
    assert decided["a"].exact_packets == pytest.approx(MODEL, rel=0.01)


def test_where_the_line_is_not_full_small_thresholds_rise_although_shares_swing() -> None:
    decided: dict[str, Decision] = {}
    law, sent = Law[str](), {"a": 0.0, "b": 0.0}
    start = {flow: counted(0) for flow in sent}
    law.step(0.0, start, SHORT, model_of(start), {"a": 2, "b": 2})
    for second in range(1, 61):
        sent = {"a": sent["a"] + 117 + 40 * (-1) ** second, "b": sent["b"] + 117 - 40 * (-1) ** second}
        decided = look(law, second, {flow: counted(packets, dropped=second) for flow, packets in sent.items()})
    assert min(one.exact_packets or 0.0 for one in decided.values()) > 0.9 * MODEL


@pytest.mark.parametrize("qthresh", [1, 2, 5, 6, 8, 50, 255])
@pytest.mark.parametrize("packets", [1, 2, 3, 5, 7, 49])
def test_the_weight_that_makes_a_threshold(qthresh: int, packets: int) -> None:
    assert qthresh * weight_for(packets, qthresh) >> 8 == packets


# ---- long paths --------------------------------------------------------------------------------------------------------

LINKS = {"30 Mbit/s, 50 ms": (30e6, 0.1, 375), "8 Mbit/s, 78 ms": (8e6, 0.156, 160)}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    "kinds",
    ["reno vegas", "vegas reno", "cubic vegas", "vegas cubic", "bbr reno", "reno bbr", "reno reno", "cubic reno"],
)
def test_a_late_flow_gets_its_share_of_a_long_path(link: str, kinds: str) -> None:
    """law.md, section 1: CUBIC, then Vegas had 1.8 % on 30 Mbit/s, Reno, then Vegas 37 %."""
    rate_bps, rtt_s, buffer_packets = LINKS[link]
    first, second = kinds.split()
    found = run(rate_bps, rtt_s, [Sender(first), Sender(second, 20.0)], buffer_packets)
    assert found.fairness > 0.83
    assert found.used > 0.92


def test_reno_alone_fills_a_long_path() -> None:
    rate_bps, rtt_s, buffer_packets = LINKS["8 Mbit/s, 78 ms"]
    found = run(rate_bps, rtt_s, [Sender("reno"), Sender("reno", 5.0)], buffer_packets, end_s=200.0)
    assert found.fairness > 0.95
    assert found.used > 0.98, "nobody gives way, so the queue is used before a packet is refused"


def test_mixes_on_long_paths() -> None:
    numbers = random.Random(5)
    for _ in range(4):
        kinds = [numbers.choice(("reno", "cubic", "vegas")) for _ in range(6)]
        senders = [Sender(kind, numbers.uniform(0, 10)) for kind in kinds]
        found = run(60e6, 0.12, senders, 1200, end_s=200.0, count_from_s=100.0)
        mean = sum(found.rates_bps) / len(senders)
        assert sum(rate * rate for rate in found.rates_bps) / len(senders) / mean**2 < 1 / 0.97, kinds
        assert found.used > 0.97


def test_one_tap_at_a_time_and_none_before_it_shows() -> None:
    law, sent, lost, taps = Law[str](), {"big": 0.0, "small": 0.0}, 0, list[float]()
    for second in range(40):
        sent = {"big": sent["big"] + 3200, "small": sent["small"] + 540 - second}
        counts = {"big": counted(sent["big"], lost), "small": counted(sent["small"])}
        decided = law.step(second, counts, LONG, {"big": 370.0, "small": 370.0}) or {}
        assert not decided or not decided["small"].tap
        if decided and decided["big"].tap:
            taps.append(second)
        if second == 20:
            lost = 1  # only now does enough wait at the port
    assert len([t for t in taps if t <= 20]) == 1, "the first one has not reached the flow yet"
    assert len(taps) > 1


def test_a_flow_with_a_new_entry_waits_for_no_tap() -> None:
    """As when the switch has restarted: its counters began at 0, and the tap went with the old entry."""
    law, taps = Law[str](), list[int]()
    for second, since_s in enumerate((0, 1, 2, 1, 2, 3)):
        decided = look(law, second, {"big": counted(3200 * since_s), "small": counted(540 * since_s)}, LONG)
        if decided and decided["big"].tap:
            taps.append(second)
    assert taps == [2, 4]


def test_a_flow_that_taps_do_not_reach_is_held() -> None:
    decided: dict[str, Decision] = {}
    law, sent, lost = Law[str](), {"deaf": 0.0, "other": 0.0}, 0
    for second in range(30):
        sent = {"deaf": sent["deaf"] + 3000, "other": sent["other"] + 750 - 5 * second}
        counts = {"deaf": counted(sent["deaf"], lost), "other": counted(sent["other"])}
        decided = law.step(second, counts, LONG, {"deaf": 370.0, "other": 370.0}) or {}
        lost += bool(decided) and decided["deaf"].tap
        if decided and decided["deaf"].why is Why.HELD:
            break
    assert decided["deaf"].why is Why.HELD
    assert (decided["deaf"].qthresh_packets or 999) <= 8, "what it has waiting"


# ---- properties --------------------------------------------------------------------------------------------------------


def history(seed: int, flows: int) -> list[dict[str, tuple[float, int]]]:
    """Packets and losses of each flow in each second: rates that wander on a line that is full half of the time."""
    numbers = random.Random(seed)
    wants = {f"f{index}": numbers.uniform(10, 400) for index in range(flows)}
    found: list[dict[str, tuple[float, int]]] = []
    for _ in range(60):
        wants = {flow: want * numbers.uniform(0.8, 1.25) for flow, want in wants.items()}
        fits = min(1.0, 250 / sum(wants.values()))
        found.append({flow: (want * fits, int(fits < 1 and numbers.random() < 0.3)) for flow, want in wants.items()})
    return found


def decisions(
    rows: list[dict[str, tuple[float, int]]],
    port: Port,
    packet_bytes: int = 1000,
    scale: float = 1.0,
    weights: Mapping[str, float] | None = None,
) -> list[dict[str, Decision]]:
    """What the law decides over such a history, `scale` times as fast."""
    law, found = Law[str](), list[dict[str, Decision]]()
    sums: dict[str, tuple[float, int]] = dict.fromkeys(rows[0], (0.0, 0))
    for second, row in enumerate(rows):
        counts: dict[str, FlowCount] = {}
        for flow, (packets, lost) in row.items():
            sums[flow] = sums[flow][0] + packets * scale, sums[flow][1] + lost
            number = round(sums[flow][0]) + sums[flow][1]
            weight = (weights or {}).get(flow, 1.0)
            counts[flow] = FlowCount(number, number * packet_bytes, sums[flow][1], sums[flow][1] * packet_bytes, weight)
        model = {flow: MODEL * count.weight for flow, count in counts.items()}
        decided = law.step(second, counts, port, model)
        if decided is not None:
            found.append(decided)
    return found


def thresholds(found: list[dict[str, Decision]]) -> list[dict[str, tuple[Why, int | None, bool]]]:
    return [{flow: (one.why, one.qthresh_packets, one.tap) for flow, one in row.items()} for row in found]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("path", [(0.004, 0.008), (0.004, 1.5)])
def test_only_shares_and_packets_count(seed: int, path: tuple[float, float]) -> None:
    """A line 16 times as fast with packets 16 times as long, the same packets a second: the same decisions. A power of two, so that nothing is rounded."""
    rows = history(seed, 4)
    slow = decisions(rows, Port(LINK_BPS, *path, 50, 3.0))
    fast = decisions(rows, Port(16 * LINK_BPS, *path, 50, 3.0), packet_bytes=16_000)
    assert thresholds(slow) == thresholds(fast)


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_flows_does_not_count(seed: int) -> None:
    rows = history(seed, 5)
    turned = [dict(reversed(row.items())) for row in rows]
    assert thresholds(decisions(rows, SHORT)) == thresholds(decisions(turned, SHORT))


@pytest.mark.parametrize("seed", range(10))
def test_no_threshold_falls_while_the_line_idles(seed: int) -> None:
    law, numbers = Law[str](), random.Random(seed)
    sums = dict.fromkeys("abc", 0.0)
    before: dict[str, float] = {}
    for second in range(30):
        sums = {flow: packets + numbers.uniform(1, 60) * (1 + second / 10) for flow, packets in sums.items()}
        if sum(sums.values()) > 200 * (second + 1):
            break
        decided = look(law, second, {flow: counted(packets) for flow, packets in sums.items()})
        now = {flow: law._states[flow].log_factor for flow in decided}  # pyright: ignore[reportPrivateUsage]
        if law.utilisation is not None and law.utilisation < law_module.IDLE_UTILISATION:
            held = [flow for flow in now if decided[flow].why is Why.TUNED and flow in before]
            assert all(now[flow] >= before[flow] - 1e-9 for flow in held), second
        assert not any(one.tap for one in decided.values())
        before = now


@pytest.mark.parametrize("seed", range(10))
def test_a_heavier_flow_may_have_more_waiting(seed: int) -> None:
    rows = history(seed, 3)
    light = decisions(rows, SHORT)[-1]["f0"].exact_packets
    heavy = decisions(rows, SHORT, weights={"f0": 2.0})[-1]["f0"].exact_packets
    assert light is None or heavy is None or heavy >= light


# ---- how long lanes are --------------------------------------------------------------------------------------------------


def look_at_lanes(
    lanes: LaneLength[str], seconds: int, far_share: float, tooth_looks: int = 5, *, longest: float = 9.0
) -> list[float]:
    """`near` gets 100 packets a second and loses none; `far` gets a part of that and loses one in so many looks."""
    factors: list[float] = []
    for second in range(seconds + 1):
        counts = {
            "near": counted(100 * second),
            "far": counted(100 * far_share * second, dropped=second // tooth_looks),
        }
        factors.append(lanes.step(float(second), counts, longest))
    return factors


def test_lanes_grow_while_a_flow_loses_packets_below_its_share() -> None:
    factors = look_at_lanes(LaneLength[str](), 40, 0.8)
    steps = [second for second in range(1, 41) if factors[second] > factors[second - 1]]
    assert factors[:10] == [1.0] * 10  # its first loss begins a saw-tooth, its second ends one
    assert steps == [10, 20, 30, 40]  # what began in shorter lanes counts no more
    assert factors[10] == pytest.approx(1.5)


@pytest.mark.parametrize(("far_share", "tooth_looks"), [(0.98, 5), (1.0, 1), (0.8, 99), (1.3, 5)])
def test_lanes_stay_where_all_have_their_share_or_lose_nothing(far_share: float, tooth_looks: int) -> None:
    assert look_at_lanes(LaneLength[str](), 40, far_share, tooth_looks)[-1] == 1.0


def test_lanes_are_no_longer_than_the_port_has_room_for_and_forget() -> None:
    lanes = LaneLength[str]()
    assert max(look_at_lanes(lanes, 60, 0.5, longest=2.0)) == 2.0
    later = [lanes.step(60.0 + second, {"near": counted(6000 + 100 * second)}, 2.0) for second in range(1, 200)]
    assert later == sorted(later, reverse=True)
    assert later[-1] == 1.0


def test_a_weight_is_a_share_of_the_lanes_too() -> None:
    lanes = LaneLength[str]()
    for second in range(41):
        heavy, light = (
            FlowCount(rate * second, 1000 * rate * second, second // 5, 0, weight)
            for rate, weight in ((100, 2.0), (50, 1.0))
        )
        lanes.step(float(second), {"heavy": heavy, "light": light}, 9.0)
    assert (lanes.factor, lanes.mean_weight) == (1.0, 1.5)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_counters_say_lanes_are_between_once_and_the_port_s_room(seed: int) -> None:
    chance, lanes, now_s = random.Random(seed), LaneLength[int](), 0.0
    for _ in range(100):
        now_s += chance.choice([0.0, 0.1, 1.0, 30.0])
        flows = chance.sample(range(6), chance.randint(0, 6))
        counts = {
            flow: FlowCount(
                arrived := chance.randint(0, 10**6),
                1000 * arrived,
                dropped,
                1000 * dropped,
                chance.choice([0.0, 1.0, 3.0]),
            )
            for flow in flows
            for dropped in [chance.randint(0, 1000)]
        }
        longest = chance.choice([0.5, 1.0, 7.0])
        assert 1.0 <= lanes.step(now_s, counts, longest) <= max(1.0, longest)


def test_many_flows_are_looked_at_less_often_and_shares_still_meet() -> None:
    steps = [law_module.step_s(flows) for flows in (2, 85, 256, 10_000)]
    assert steps == [1.0, 1.0, pytest.approx(3.01, abs=0.01), pytest.approx(3.01, abs=0.01)]
    plant = Plant({f"vegas {number}": 3.0 for number in range(128)}, held=tuple(f"reno {n}" for n in range(128)))
    law, decided, before, counts = Law[str](), dict[str, Decision](), dict[str, float](), dict[str, FlowCount]()
    port = Port(LINK_BPS, 0.004, 0.008, 1000, 700.0)
    for step in range(60):
        before = dict(plant.sent) if step == 30 else before
        counts = plant.step(3.0, decided)
        decided = law.step(3.0 * step, counts, port, model_of(counts), step_s=3.0) or {}
    rates = [plant.sent[flow] - before[flow] for flow in plant.sent]
    assert min(rates) / max(rates) > 0.8  # without the law 0.67


@pytest.mark.parametrize("port", [SHORT, LONG])
def test_two_flows_of_which_nothing_is_admitted_beside_a_young_one(port: Port) -> None:
    law, sent = Law[str](), 0.0
    for second in range(30):
        sent += port.line_bps / 16_000
        look(law, second, {"a": counted(sent), "b": counted(sent)}, port)
    starved = counted(sent, dropped=50)
    decided = look(law, 30, {"a": starved, "b": starved, "c": counted(100)}, port)
    assert decided["a"].error == decided["b"].error == 0.0
    assert decided["c"].why is Why.YOUNG
