# SPDX-License-Identifier: Apache-2.0
"""GFR's configuration: what a file may say, and the sentence for each thing that it may not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gfr_configs as configs
import pytest
from fairlane_controller.config.read import check, read_file
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.quantities import DSCP_NAMES, parse_dscp
from fairlane_controller.program.registry import load_program
from fairlane_controller.programs.gfr.check import problems_of
from fairlane_controller.programs.gfr.config import GfrState, VcMatch
from fairlane_controller.programs.gfr.entries import classify_entries
from fairlane_controller.state.run_state import RunState
from finsy import P4TableEntry


def refused(data: dict[str, Any], run: RunState | None = None) -> str:
    """What is said about a configuration that is refused."""
    with pytest.raises(FairlaneError) as caught:
        configs.check_config(data, run)
    assert caught.value.code is ErrorCode.BAD_FILE
    assert caught.value.message.startswith("gfr.toml: ")
    assert "\n" not in caught.value.message
    return caught.value.message


def test_the_documents_example_is_good(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "concepts" / "gfr.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "gfr.toml"
    path.write_text(f'program = "gfr"\n{block}', encoding="utf-8")
    loaded = read_file(path)
    check(loaded, None)
    state = GfrState().changed_by(loaded.config.part_of(load_program("gfr")))
    (port,), (vc,) = state.ports, state.vcs
    assert (port.capacity, port.scheme, port.queues, vc.mcr) == (51_840_000, "proposed", "wrr", 2e6)
    assert (vc.edges, vc.mfs_frame_bytes, vc.mfs_cells) == ([("s1", 1)], 1514, 32)
    assert GfrState.model_validate(state.model_dump(mode="json")) == state


def test_a_good_configuration_fits_its_topology() -> None:
    configs.check_config(configs.data(), configs.run_state())


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("ports.0.capacity", "fast", "ports[0].capacity: rate 'fast' is not a number with a unit; examples: 512kbit"),
        ("ports.0.capacity", 0, "ports[0].capacity: 0 is out of range: must be greater than 0"),
        ("ports.0.capacity", None, "ports[0].capacity: must be given: it is C_GFR"),
        ("ports.0.scheme", "propose", "ports[0].scheme: 'propose': must be 'drop_tail', 'double_epd', 'dfba', 'wfba', 'pervc_threshold' or 'proposed'"),
        ("ports.0.queues", "drr", "ports[0].queues: 'drr': must be 'wrr' or 'fifo'"),
        ("ports.0.lbo_cell", 5, "ports[0].lbo_cell: unknown key; did you mean 'lbo_cells'?; valid: capacity, dfba_alpha,"),
        ("ports.0.qmax_cells", 70_000, "ports[0].qmax_cells: 70000 is out of range: must be less than or equal to 65535"),
        ("ports.0.port", 0, "ports[0].port: 0 is out of range: must be greater than or equal to 1"),
        ("ports.0.rate_period", "63us", "ports[0].rate_period: '63us' is out of range: must be greater than or equal to 0.000064"),
        ("ports.0.rate_period", "1.1s", "ports[0].rate_period: '1.1s' is out of range: must be less than or equal to 1"),
        ("ports.0.rate_period", 0.1, "ports[0].rate_period: time 0.1 must be a text with a unit"),
        ("vcs.0.weight", 0, "vcs[0].weight: 0 is out of range: must be greater than 0"),
        ("vcs.0.mcr", "-1Mbit", "vcs[0].mcr: rate '-1Mbit' is not a number with a unit"),
        ("vcs.0.mcr", -1, "vcs[0].mcr: -1 is out of range: must be greater than or equal to 0"),
        ("vcs.0.mcr", True, "vcs[0].mcr: rate True must be a number or a text with a unit"),
        ("vcs.0.mfs_bytes", 65_536, "vcs[0].mfs_bytes: 65536 is out of range: must be less than or equal to 65517"),
        ("vcs.0.name", "a b", "vcs[0].name: 'a b': String should match pattern '^[A-Za-z0-9]"),
        ("vcs.0.match.0.src", "10.0.1.1/24", "vcs[0].match[0].src: 10.0.1.1/24 has host bits set"),
        ("vcs.0.match.0.dscp", "AF55", "vcs[0].match[0].dscp: 'AF55' is no DSCP: must be 0 to 63, AF11 to AF43, CS0 to CS7 or EF"),
        ("vcs.0.match.0.dscp", 64, "vcs[0].match[0].dscp: '64' is no DSCP: must be 0 to 63"),
        ("vcs.0.match.0.vlan", 4095, "vcs[0].match[0].vlan: 4095 is out of range: must be less than or equal to 4094"),
        ("vcs.0.match.0.swich", "s1", "vcs[0].match[0].swich: unknown key; did you mean 'switch'?; valid: dscp, dst, ingress_port, src, switch, vlan"),
        ("vcs.0.mark_dscp", "AF11", "vcs[0].mark_dscp: 'AF11': must be '', 'AF12', 'AF13'"),
        ("vcs.0.edge.0", "s1", "vcs[0].edge[0]: 's1': must be SWITCH:PORT, e.g. s1:3"),
        ("vcs.0.path", ["s1:512"], "vcs[0].path[0]: 's1:512': must be SWITCH:PORT"),
        ("vcs.0.match", [], "vcs[0].match: []: Tuple should have at least 1 item"),
        ("vcs.0.match.0.dst", "2001:db8::/32", "vcs[0].match[0]: src 10.0.1.0/24 and dst 2001:db8::/32 are of different IP versions"),
    ],
)  # fmt: skip
def test_one_value_that_cannot_be(path: str, value: Any, message: str) -> None:
    assert message in refused(configs.changed(path, value))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("ports.0.lbo_cells", 3000, "ports[0].lbo_cells: 3000 must be below hbo_cells (3000)"),
        ("ports.0.hbo_cells", 4000, "ports[0].hbo_cells: 4000 must be below qmax_cells (4000)"),
        ("ports.0.rate_period", "100ms", "ports[0].rate_period: 100ms must be at most 64us with this capacity and rate_form 'time'"),
        ("vcs.1.name", "vc1", "vcs: the name 'vc1' occurs 2 times; it may once"),
        ("vcs.0.pcr", "1Mbit", "vcs[0].pcr: 1 Mbit/s must be at least mcr (2 Mbit/s)"),
        ("vcs.0.mbs_cells", 31, "vcs[0].mbs_cells: 31 must be at least 32, a frame of mfs_bytes (1500)"),
        ("vcs.0.mcr", "24Mbit", "ports[0].capacity: the MCRs of 5 VCs sum up to 52 Mbit/s on s1:6, 160 kbit/s more than its capacity of 51.84 Mbit/s"),
        ("vcs.0.match.0.switch", "s2", "vcs[0].edge[0]: nothing in match finds vc1 at s1:1"),
        ("vcs.0.edge.0", "s1:4", "vcs[0].edge[0]: nothing in match finds vc1 at s1:4"),
        ("vcs.0.path", ["s1:7"], "vcs[0].path: vc1 must cross managed ports (s1:6): name its switches in match, or its ports in path"),
        ("vcs.1.match", [{"switch": "s1", "ingress_port": 1, "src": "10.0.1.0/24"}], "vcs[1].match[0]: vc2 matches the same packets as vc1 at switch s1: one of them must say more"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_together(path: str, value: Any, message: str) -> None:
    assert message in refused(configs.changed(path, value))


def test_a_period_is_of_the_alpha_form_and_of_no_more_cells_than_are_counted() -> None:
    data = configs.changed("ports.0.rate_form", "alpha")
    data["ports"][0]["rate_period"] = "1s"
    configs.check_config(data)
    data["ports"][0]["capacity"] = "10Gbit"
    assert "ports[0].rate_period: 1s must be at most 711353us with" in refused(data)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("ports.0.switch", "s3", "ports[0].switch: unknown switch 's3'; did you mean 's2'?; valid: s1, s2"),
        ("ports.0.port", 9, "ports[0].port: switch s1 has no port 9; valid: 1, 2, 3, 4, 5, 6"),
        ("vcs.0.match.0.switch", "x9", "vcs[0].match[0].switch: unknown switch 'x9'; valid: s1, s2"),
        ("vcs.0.edge.0", "s1:12", "vcs[0].edge[0].port: switch s1 has no port 12; valid: 1, 2, 3, 4, 5, 6"),
        ("ports.0.qmax_cells", 4001, "ports[0].qmax_cells: 4001 must be at most 4000, the buffer of s1:6 (port_cells)"),
        ("ports.0.capacity", "60Mbit", "ports[0].capacity: 60 Mbit/s must be at most the rate of s1:6, 51.84 Mbit/s"),
    ],
)  # fmt: skip
def test_what_the_topology_does_not_have(path: str, value: Any, message: str) -> None:
    assert message in refused(configs.changed(path, value), configs.run_state())


def test_a_port_has_a_queue_for_4095_vcs_at_most_also_where_no_topology_runs() -> None:
    config = configs.config()
    vcs = tuple(config.vcs[0].model_copy(update={"name": f"v{number}", "mcr": 0.0}) for number in range(4096))
    (problem,) = (one for one in problems_of(config.model_copy(update={"vcs": vcs})) if one.startswith("ports[0]"))
    assert problem == "ports[0].queues: 'wrr' needs 4097 queues, and a port has at most 4096: must be 'fifo' there"
    assert not any(one.startswith("ports") for one in problems_of(config.model_copy(update={"vcs": vcs[1:]})))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (configs.run_state("bmv2"), "ports[0].queues: 'wrr' needs the scheduler wrr or drr and 6 queues, and s1:6 has 'strict' and 16: must be 'fifo' there"),
        (configs.run_state(queues=5), "ports[0].queues: 'wrr' needs the scheduler wrr or drr and 6 queues, and s1:6 has 'wrr' and 5: must be 'fifo' there"),
        (configs.run_state(scheduler="strict"), "ports[0].queues: 'wrr' needs the scheduler wrr or drr and 6 queues, and s1:6 has 'strict'"),
        (configs.run_state(queue_packets=1000), "qmax_cells: 4000 must be at most 1000, the buffer of s1:6 (queue_packets)"),
        (configs.run_state(mtu=576), "vcs[0].mfs_bytes: 1500 must be at most 576, the MTU of s1:6"),
    ],
)  # fmt: skip
def test_what_the_port_cannot_do(run: RunState, message: str) -> None:
    assert message in refused(configs.data(), run)


def test_fifo_is_possible_on_bmv2() -> None:
    configs.check_config(configs.changed("ports.0.queues", "fifo"), configs.run_state("bmv2", scheduler="", queues=0))


def test_jumbo_frames_where_the_topology_carries_them() -> None:
    data = configs.changed("vcs.0.mfs_bytes", 7720)
    configs.check_config(data, configs.run_state(mtu=9000))
    assert "vcs[0].mfs_bytes: 7720 must be at most 1500, the MTU of s1:6" in refused(data, configs.run_state())


def test_three_problems_at_a_time() -> None:
    data = configs.data()
    for vc in data["vcs"]:
        vc["mbs_cells"] = 1
    message = refused(data)
    assert message.count("mbs_cells") == 3
    assert message.endswith("(and 2 more)")


# ---- matches, paths, admission ---------------------------------------------------------------------------------------


def test_dscp_names() -> None:
    assert (parse_dscp("af12"), parse_dscp("EF"), parse_dscp("CS6"), parse_dscp("10"), parse_dscp("")) == (
        12,
        46,
        48,
        10,
        None,
    )
    assert sorted(DSCP_NAMES.values())[-1] == 56


def entries(ingress_port: int = 0, **given: Any) -> list[P4TableEntry]:
    """The entries of a match at s1."""
    return [*classify_entries(VcMatch(switch="s1", ingress_port=ingress_port, **given), 7)]


def test_a_match_without_addresses_is_for_both_ip_versions() -> None:
    four, six = entries(1, vlan=100)
    assert (four.table_id, six.table_id) == ("vc_classify", "vc_classify_v6")
    assert dict(four.match or {}) == dict(six.match or {}) == {"ingress_port": (1, 0x1FF), "vid": (100, 0xFFF)}
    (only,) = entries(dscp="EF", src="2001:db8::/32")
    assert only.table_id == "vc_classify_v6"


def priority(**given: Any) -> int:
    """That of a match's entry for IPv4."""
    return entries(**given)[0].priority or 0


def test_the_more_precise_match_wins() -> None:
    assert priority(src="10.1.0.0/16") > priority(src="10.0.0.0/8") > priority()
    assert priority(src="10.1.0.0/16", dst="10.0.0.0/8") > priority(ingress_port=1, vlan=2)


def test_of_equally_precise_matches_one_decides() -> None:
    ranks = [
        priority(src="16.0.0.0/4", dst="16.0.0.0/5", ingress_port=1, vlan=2),
        priority(src="16.0.0.0/9", dst="16.0.0.0/9", vlan=2),
        priority(src="16.0.0.0/12", dst="16.0.0.0/12", dscp="EF"),
        priority(src="10.9.8.0/24", dst="16.0.0.0/6"),
        priority(src="16.0.0.0/6", dst="10.9.8.0/24"),
    ]
    assert ranks == sorted(ranks, reverse=True)
    assert len({*ranks}) == 5
    other = [{"switch": "s1", "ingress_port": 1, "dst": "10.0.9.0/24"}, {"switch": "s1", "ingress_port": 2}]
    configs.check_config(configs.changed("vcs.1.match", other))


def test_a_vc_crosses_the_ports_of_its_path_or_all_of_its_switches() -> None:
    data = configs.data()
    data["ports"].append({"switch": "s1", "port": 1, "capacity": "51.84Mbit"})
    data["ports"].append({"switch": "s2", "port": 6, "capacity": "51.84Mbit"})
    data["vcs"][1]["path"] = ["s1:1"]
    crossing = configs.state_of(data).vcs_of()
    assert {place: [vc.name for vc in vcs] for place, vcs in crossing.items()} == {
        ("s1", 6): ["vc1", "vc3", "vc4", "vc5"],
        ("s1", 1): ["vc1", "vc2", "vc3", "vc4", "vc5"],
        ("s2", 6): [],
    }


def test_admission_is_exact_to_the_last_bit() -> None:
    good = configs.changed("vcs.0.mcr", "23.84Mbit")
    configs.check_config(good)
    assert "ports[0].capacity: the MCRs of 5 VCs sum up to 51.84 Mbit/s" in refused(
        configs.changed("vcs.0.mcr", 23_840_100)
    )
