# SPDX-License-Identifier: Apache-2.0
"""Links in the topology file: presets and what wins over them, traces, changes over time and their errors. Nothing is started."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from fairlane_controller.errors import ErrorCode
from fairlane_switch.control import ControlError
from fairlane_switch.link_control import Effects, effects
from fairlane_switch.link_presets import PRESETS
from fairlane_switch.link_series import Series, form_of
from fairlane_switch.wire import LinkOptions
from fairlane_topology import changes as fl_changes
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import Direction, LinkChange

if TYPE_CHECKING:
    from fairlane_topology.network import Network

Document = dict[str, Any]


def document(link: Document | None = None, changes: list[Document] | None = None) -> Document:
    """h1 - s1 - s2 - h2 with `link` between the switches."""
    return {
        "hosts": {"h1": {"ip": "10.0.1.1/24"}, "h2": {"ip": "10.0.2.2/24"}},
        "switches": {"s1": {}, "s2": {}},
        "links": [
            {"a": "h1", "b": "s1-p1"},
            {"a": "s1-p2", "b": "s2-p1", **(link or {})},
            {"a": "s2-p2", "b": "h2"},
        ],
        "changes": changes or [],
    }


def middle(link: Document) -> fl_topology.Link:
    return fl_topology.check(document(link)).links[1]


def test_a_direction_has_what_the_wire_has_by_the_same_names() -> None:
    assert Direction().model_dump() == LinkOptions().model_dump()
    way = Direction.model_validate({"delay": "5ms", "ge_enter": 0.1, "ge_leave": 0.5})
    assert LinkOptions(**way.model_dump()) == LinkOptions(delay_us=5000, ge_enter=0.1, ge_leave=0.5)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_link_and_its_changes_fit(name: str) -> None:
    topology = fl_topology.check(document({"preset": name}))
    link = topology.links[1]
    assert link.is_emulated
    assert (link.a_to_b == link.b_to_a) == ("b_to_a" not in PRESETS[name].link)
    assert len(topology.changes) == len(PRESETS[name].changes)
    assert topology.ports["s1"][2].rate_bps == topology.ports["s2"][1].rate_bps == link.bandwidth_bps > 0
    assert all(change.link == "s1-s2" for change in topology.changes)


def test_what_the_file_says_beside_a_preset_wins() -> None:
    link = middle({"preset": "geo", "ber": 1e-5, "delay": "250ms", "b_to_a": {"delay": "300ms"}})
    assert (link.a_to_b.ber, link.a_to_b.delay_us, link.b_to_a.delay_us) == (1e-5, 250_000, 300_000)
    assert link.b_to_a.ber == 1e-5
    assert link.bandwidth_bps == 1_544_000
    assert middle({"preset": "geo", "bandwidth": "8Mbit"}).bandwidth_bps == 8_000_000
    # By either spelling of a key.
    assert middle({"preset": "geo", "delay_us": 7}).a_to_b.delay_us == 7


def test_leo_changes_its_satellite_every_15_seconds() -> None:
    changes = fl_topology.check(document({"preset": "leo"})).changes
    first = list(itertools.islice(fl_changes.schedule(changes), 6))
    assert [at_s for at_s, _ in first] == [15, 30, 45, 60, 75, 90]
    assert first[0][1] is first[4][1]
    delays = [change.delay_ms for _, change in first]
    assert all(a != b for a, b in itertools.pairwise(delays)), "another path each time"
    assert all(25 <= (delay or 0) <= 35 for delay in delays)


def test_a_schedule_ends_where_it_shall_and_keeps_the_order_of_the_file() -> None:
    def change(at_s: float, every_s: float | None = None) -> LinkChange:
        return LinkChange(at_s=at_s, every_s=every_s, link="s1-s2", loss=0.1)

    changes = [change(5), change(1, 2), change(5)]
    found = [(at_s, changes.index(each)) for at_s, each in fl_changes.schedule(changes, 7)]
    assert [at_s for at_s, _ in found] == [1, 3, 5, 5, 5]
    assert list(fl_changes.schedule([change(9)], 9)) == []


def test_effects_are_the_ports_rates_and_the_wires_settings() -> None:
    links = fl_topology.check(document({"delay": "1ms"})).links
    change = LinkChange(at_s=0, link="s1-s2", rate_bps=500_000, delay_ms=60, ge_enter=0.01)
    done = effects(change.change, links[1])
    assert (list(map(str, done.ports)), change.change.rate_bps) == (["s1-p2", "s2-p1"], 500_000)
    assert done.wire == [("both", {"delay_us": 60_000, "ge_enter": 0.01})]
    one_way = LinkChange(at_s=0, link="s1-s2", direction="b_to_a", rate_bps=500_000)
    one = effects(one_way.change, links[1])
    assert (one.wire, list(map(str, one.ports)), one.needs_wire) == ([], ["s2-p1"], False)
    # At a host's end there is no switch port: the wire has the rate of that direction.
    at_host = LinkChange(at_s=0, link="h1-s1", rate_bps=500_000)
    access = effects(at_host.change, links[0])
    assert access.wire == [("a_to_b", {"rate_bps": 500_000})]
    assert (list(map(str, access.ports)), access.needs_wire) == (["s1-p1"], True)
    wifi = LinkChange(at_s=0, link="s1-s2", preset="wifi", ge_loss=0.9).change
    preset = effects(wifi, links[1])
    assert dict(preset.wire)["both"]["ge_loss"] == 0.9
    assert dict(preset.wire)["both"]["delay_us"] == 3_000
    assert (str(preset.ports[0]), wifi.rate_bps) == ("s1-p2", 20_000_000)


def test_a_spike_blocks_the_wire_or_the_line_of_what_sends() -> None:
    def told(link: fl_topology.Link, **values: Any) -> Effects:
        return effects(LinkChange(at_s=1, link=link.name, spike_s=5, **values).change, link)

    between, access = fl_topology.check(document()).links[1], fl_topology.check(document()).links[0]
    assert told(between).wire_spikes == ("both",)
    assert told(between, direction="b_to_a").wire_spikes == ("b_to_a",)
    blocked = told(between, spike_blocks="line")
    assert (blocked.wire_spikes, list(map(str, blocked.port_spikes)), blocked.needs_wire) == (
        (),
        ["s1-p2", "s2-p1"],
        False,
    )
    blocked = told(access, spike_blocks="line")
    assert (blocked.wire_spikes, list(map(str, blocked.port_spikes))) == (("a_to_b",), ["s1-p1"])


def test_a_link_that_changes_is_emulated_from_the_start() -> None:
    plain, wanted = fl_topology.check(document()), fl_topology.check(document({"emulated": True}))
    assert not plain.links[1].is_emulated
    assert wanted.links[1].is_emulated
    spike = fl_topology.check(document(changes=[{"at_s": 1, "link": "s1-s2", "spike_s": 1}]))
    assert [link.is_emulated for link in spike.links] == [False, True, False]
    # The rate between switches is the ports', that of a host the wire's.
    rates = [{"at_s": 1, "link": "s1-s2", "rate_bps": "1Mbit"}, {"at_s": 1, "link": "s2-h2", "rate_bps": 10**6}]
    assert [link.is_emulated for link in fl_topology.check(document(changes=rates)).links] == [False, False, True]


def test_the_changes_of_the_docs_are_changes() -> None:
    text = (Path(__file__).parents[2] / "docs" / "links.md").read_text(encoding="utf-8")
    varying, example = (part.partition("```")[0] for part in text.split("```json\n")[1:])
    topology = document(json.loads(varying) | {"bandwidth": {"steps": [[0, 1e6]]}})
    assert isinstance(fl_topology.check(topology).ports["s1"][3].rate_bps, Series)
    changes = fl_topology.check(document({"delay": "5ms"}, json.loads(f"{{{example}}}")["changes"])).changes
    assert [change.at_s for change in changes] == [20, 30, 40]


def test_traces_are_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "up.trace").write_text("1\n2\n")
    path = tmp_path / "t.json"
    path.write_text(
        json.dumps(
            document(
                {"b_to_a": {"rate": {"trace": "up.trace"}}},
                [{"at_s": 6, "link": "s1-s2", "direction": "b_to_a", "rate_bps": {"trace": "up.trace"}}],
            )
        )
    )
    topology = fl_topology.load(path)
    rates = topology.links[1].b_to_a.rate_bps, topology.changes[0].rate_bps
    assert [form_of(rate) for rate in rates] == [{"trace": str(tmp_path / "up.trace")}] * 2
    assert (rates[0], topology.links[1].a_to_b.rate_bps) == (12_000_000, 0)
    (tmp_path / "up.trace").unlink()
    with pytest.raises(
        fl_topology.TopologyError, match=r"/links/1/b_to_a/rate: .*up\.trace: cannot be read: No such file"
    ):
        fl_topology.load(path)


@pytest.mark.parametrize(
    ("link", "changes", "message"),
    [
        ({"preset": "sat"}, [], r"/links/1/preset: .*there is no preset 'sat'; there are geo, leo, geo-hts, starlink, wifi, 5g, 3g, handover-"),
        ({"jitter": "1ms"}, [], r"/links/1/jitter: 1000 exceeds delay_us \(0\); allowed: 0 to 0 µs"),
        ({"delay": "1ms", "b_to_a": {"jitter": "2ms"}}, [], r"/links/1/b_to_a/jitter: 2000 exceeds delay_us \(1000\)"),
        ({"ge_enter": 0.1, "ge_leave": 0}, [], r"/links/1/ge_leave: .*greater than or equal to 0\.000001"),
        ({"ge_exit": 0.1}, [], r"/links/1/ge_exit: .*allowed keys: a, a_to_b, .*ge_ber, ge_enter, ge_good, ge_leave, ge_loss"),
        ({"rate": {"trace": "t" * 5000}}, [], r"/links/1/rate: trace: t+…"),
        ({"delay": {"uniform": [5, 100]}}, [], r"/links/1/delay: uniform: every_s is missing"),
        ({}, [{"at_s": 1, "link": "s1-s2", "loss": {"choice": [2], "every_s": 1}}], r"/changes/0/loss: choice: 2 is out of range; allowed: 0 to 1"),
        ({}, [{"at_s": 1, "link": "s1-s9", "loss": 0}], r"/changes/0/link: there is no link 's1-s9'; there are h1-s1, s1-s2, s2-h2"),
        ({}, [{"at_s": 1, "link": "s1-s2"}], r"/changes/0: .*changes nothing; give one of preset, delay_ms, .*outage_s"),
        ({}, [{"at_s": 1, "link": "s1-s2", "delay": "5ms"}], r"/changes/0/delay: .*allowed keys: at_s, ber, dama_cra_bps, dama_delay_ms, dama_frame_ms, delay_ms, direction"),
        ({}, [{"at_s": -1, "link": "s1-s2", "loss": 0}], r"/changes/0/at_s: .*greater than or equal to 0"),
        ({}, [{"at_s": 1, "every_s": 0, "link": "s1-s2", "loss": 0}], r"/changes/0/every_s: .*greater than or equal to 0\.01"),
        ({}, [{"at_s": 1, "link": "s1-s2", "rate_bps": "fast"}], r"/changes/0/rate_bps: .*'fast' is not a number with a unit"),
        (
            {"b_to_a": {"rate": "1Mbit"}},
            [{"at_s": 1, "link": "s1-s2", "spike_s": 1, "spike_blocks": "line"}],
            r"/changes/0/spike_blocks: the queue before the wire's own rate \(b_to_a\) would go on; allowed: delivery",
        ),
        # In the order of time, not of the file: at 2 s the jitter no longer fits.
        (
            {"delay": "5ms"},
            [{"at_s": 2, "link": "s1-s2", "delay_ms": 1}, {"at_s": 1, "link": "s1-s2", "jitter_ms": 3}],
            r"/changes/0/jitter_ms: 3000 exceeds delay_us \(1000\); allowed: 0 to 1000 µs",
        ),
        ({}, [{"at_s": 1, "link": "s1-s2", "dama_frame_ms": 5}], r"/changes/0/dama_frame_ms: .*beside a rate"),
        # Nor in the second round of a rule that repeats itself.
        (
            {"delay": "5ms"},
            [{"at_s": 1, "every_s": 10, "link": "s1-s2", "jitter_ms": 3}, {"at_s": 2, "link": "s1-s2", "jitter_ms": 0},
             {"at_s": 3, "link": "s1-s2", "delay_ms": 1}],
            r"/changes/0/jitter_ms: 3000 exceeds delay_us",
        ),
    ],
)  # fmt: skip
def test_bad_links_and_changes_say_what_where_and_what_is_allowed(
    link: Document, changes: list[Document], message: str
) -> None:
    with pytest.raises(fl_topology.TopologyError, match=message):
        fl_topology.check(document(link, changes))


def test_parallel_links_have_names_of_their_own() -> None:
    both = document({}, [{"at_s": 1, "link": "s1-s2", "jitter_ms": 20}])
    both["links"].append({"a": "s1-p4", "b": "s2-p4", "delay": "50ms"})
    with pytest.raises(fl_topology.TopologyError, match=r"/changes/0/jitter_ms: 20000 exceeds delay_us \(0\)"):
        fl_topology.check(both)
    both["links"][1]["delay"], both["links"][3]["delay"] = "50ms", 0
    both["changes"].append({"at_s": 1, "link": "s1-s2-2", "loss": 0.1})
    checked = fl_topology.check(both)
    assert [checked.link(name).a_to_b.delay_us for name in ("s1-s2", "s1-s2-2")] == [50_000, 0]
    assert [link.name for link in checked.links if link.emulated] == ["s1-s2", "s1-s2-2"]


@pytest.mark.parametrize(
    ("problem", "attempts", "said"),
    [
        (ControlError(ErrorCode.SWITCH_UNREACHABLE, "refused"), 3, []),  # it has died, and was started again
        (
            ControlError(ErrorCode.REFUSED, "set: no such link"),
            1,
            ["error: at 0 s: change of s1-s2: set: no such link; no further changes"],
        ),
    ],
)
def test_a_change_waits_for_a_wire_that_is_away(
    problem: Exception, attempts: int, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    told: list[str] = []
    done = threading.Event()

    def apply(_network: object, change: LinkChange) -> None:
        made.append(change.link)
        if len(made) < 3:
            raise RuntimeError(f"change of {change.link}: {problem}") from problem
        done.set()

    def tell(text: str) -> None:
        told.append(text)
        done.set()

    monkeypatch.setattr(fl_changes, "apply", apply)
    change = LinkChange(at_s=0, link="s1-s2", delay_ms=1)
    with fl_changes.playing(cast("Network", None), [change], tell):
        assert done.wait(10)
    assert (len(made), told) == (attempts, said)
