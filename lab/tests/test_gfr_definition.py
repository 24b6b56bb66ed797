# SPDX-License-Identifier: Apache-2.0
"""VCs in experiment files: what they become in a scenario, how the controller gets them, and errors that say what is allowed."""

from __future__ import annotations

import pytest
from fairlane_controller.programs.gfr.lab.config import gfr_config, way
from fairlane_controller.programs.gfr.model import guaranteed_shares
from fairlane_lab.definition.expansion import expand
from fairlane_lab.definition.loading import Definition, load_text
from fairlane_lab.paths import EXPERIMENTS
from fairlane_lab.problems import ExperimentError
from fairlane_topology import topology as fl_topology

FILE = """
name = "small"
title = "Small"
paper = "Kim and Lee 2004"
reproduces = "nothing"
what = "A small experiment."
runtimes = ["sim"]
program = "gfr"
[params]
lbo_cells = 500
[sweep]
control = [{ scheme = "double_epd", scheduler = "fifo", label = "a" }, { scheme = "proposed", scheduler = "wrr", label = "b" }]
[topology]
base = "gfr-parking"
[[vcs]]
name = "vc1"
mcr_bps = 10_000_000
[[vcs]]
name = "vc2"
mcr_bps = 40_000_000
mbs_cells = 64
[[flows]]
name = "near"
vc = "vc1"
sender = "h1"
receiver = "h7"
variant = "newreno"
connections = 2
[[flows]]
name = "far"
vc = "vc2"
sender = "h2"
receiver = "h10"
variant = "newreno"
start_s = 8
[tcp]
mss_bytes = 960
[control]
[run]
duration_s = 20
warmup_s = 5
[[expect]]
text = "something"
metric = "mcr_met[vc2]"
min = 0.5
[[plots]]
kind = "bars"
name = "ratio"
title = "Ratio"
metric = "vc_ratio"
x = "control"
"""


def definition(*changes: tuple[str, str]) -> Definition:
    text = FILE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return load_text(text, "small.toml", "small")


def test_a_file_with_vcs_becomes_scenarios() -> None:
    first, second = expand(definition())
    assert first.program == "gfr"
    assert [(vc.name, vc.mcr_bps, vc.mbs_cells) for vc in first.vcs] == [
        ("vc1", 10_000_000, 200),
        ("vc2", 40_000_000, 64),
    ]
    assert [(flow.vc, flow.group) for flow in first.flows] == [("vc1", "vc1"), ("vc2", "vc2")]
    assert first.control.settings is not None
    assert first.control.settings.lbo_cells == 500
    assert (second.control.scheme, second.params["scheduler"], second.params["lbo_cells"]) == ("proposed", "wrr", 500)
    assert first.seed == second.seed  # schemes meet the same world


def test_the_controller_gets_the_vcs_where_they_enter_and_cross() -> None:
    scenario = expand(definition())[1]
    topology = fl_topology.check(dict(scenario.topology))
    config = gfr_config(scenario, topology)
    assert {port.place: port.queues for port in config.ports} == {("s1", 7): "wrr", ("s2", 2): "wrr"}
    near, far = config.vcs
    assert near.edges == [("s1", 1)]
    assert near.path == ("s1:7",)
    assert far.path == ("s1:7", "s2:2")
    assert [(match.switch, match.src) for match in far.match] == [(s, "10.0.2.2") for s in ("s1", "s2", "s3")]
    assert far.mcr == 40_000_000


def test_queues_weighted_by_the_guarantees_alone() -> None:
    """Weights of the rest that are as the MCRs make w_i a multiple of MCR_i; the fair shares stay those of (3)."""
    threshold = (
        '{ scheme = "double_epd", scheduler = "fifo", label = "a" }, { scheme = "proposed",',
        '{ scheme = "pervc_threshold",',
    )

    def w_bps(*changes: tuple[str, str]) -> list[float]:
        (scenario,) = expand(definition(threshold, *changes))
        vcs = gfr_config(scenario, fl_topology.check(dict(scenario.topology))).vcs
        return guaranteed_shares([vc.mcr for vc in vcs], 51_840_000, [vc.weight for vc in vcs])

    assert w_bps() == pytest.approx([10_920_000, 40_920_000])
    weighted = ("[control]", '[control]\nwrr_weights = "mcr"')
    assert w_bps(weighted) == pytest.approx([51_840_000 / 5, 51_840_000 * 4 / 5])
    with pytest.raises(ExperimentError, match=r'control.wrr_weights: "mcr" is for scheme = "pervc_threshold"'):
        definition(weighted)


def test_the_controller_gets_the_period_of_r_i() -> None:
    period = ("[control]", '[control]\nrate_form = "alpha"\nrate_period_us = 100_000')
    scenario = expand(definition(period))[1]
    ports = gfr_config(scenario, fl_topology.check(dict(scenario.topology))).ports
    assert {round(port.rate_period * 1e6) for port in ports} == {100_000}


def test_ways_follow_the_routes() -> None:
    scenario = expand(definition())[0]
    topology = fl_topology.check(dict(scenario.topology))
    assert way(topology, "h4", "h12") == [("s1", 4), ("s1", 7), ("s2", 2), ("s3", 4)]
    state = gfr_config(scenario, topology)
    crossing = {place: [vc.name for vc in vcs] for place, vcs in state.vcs_of().items()}
    assert crossing == {("s1", 7): ["vc1", "vc2"], ("s2", 2): ["vc2"]}
    assert state.ports[0].capacity == pytest.approx(51_840_000, rel=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('program = "gfr"', ""), "control.scheme: got 'double_epd'; allowed: 'drop_tail', 'qthresh' or 'lanes'"),
        (('vc = "vc1"', 'vc = "vc3"'), "flows[0].vc: there is no VC 'vc3'. Did you mean 'vc2'?"),
        (('vc = "vc1"\n', ""), "flows[0].vc: must be given: vc1, vc2"),
        (('sender = "h2"', 'sender = "h1"'), "flows[1].vc: h1 is in VC 'vc1' already: all flows of a host are in one VC"),
        (('name = "vc2"', 'name = "vc1"'), "vcs: the name 'vc1' occurs 2 times; it may once"),
        (("mcr_bps = 40_000_000", "mcr_bps = 50_000_000"), "vcs: the MCRs of 2 VCs sum up to 60 Mbit/s on s1:7, 8.16 Mbit/s more than"),
        (("mbs_cells = 64", "mbs_cells = 31"), "vcs[1].mbs_cells: 31 must be at least 32, a frame of mfs_bytes (1500)"),
        (("mbs_cells = 64", "pcr_bps = 1"), "vcs[1].pcr_bps: 1 bit/s must be at least mcr (40 Mbit/s)"),
        (("mbs_cells = 64", "mfs_bytes = 999"), "flows[1].vc: its packets of 1000 bytes are longer than mfs_bytes 999 of vc2: all would be dropped"),
        (("mbs_cells = 64", "mfs_bytes = 9001"), "vcs[1].mfs_bytes: 9001 must be at most 9000, the MTU of s1:7"),
        (("lbo_cells = 500", "lbo_cells = 3000"), "control.lbo_cells: 3000 must be below hbo_cells (3000)"),
        (('[control]', '[control]\nhbo_cells = 4000'), "control.hbo_cells: 4000 must be below qmax_cells (4000)"),
        (('[control]', '[control]\nqmax_cells = 4001'), "control.qmax_cells: 4001 must be at most 4000, the buffer of s1:7 (port_cells)"),
        (('[control]', '[control]\nrate_period_us = 1000'), "control.rate_period_us: 1ms must be at most 64us with this capacity and rate_form 'time'"),
        (('[control]', '[control]\nrate_form = "alpha"\nrate_period_us = 63'), "control.rate_period_us: "),
        (('[control]', '[control]\nrate_alfa = 0.5'), "control.rate_alfa: there is no key 'rate_alfa'. Did you mean 'rate_alpha'?"),
        (('scheme = "double_epd"', 'scheme = "qthresh"'), "control.scheme: got 'qthresh'; allowed: 'drop_tail', 'double_epd',"),
        (('scheme = "double_epd"', 'scheme = "doubleepd"'), "control.scheme: got 'doubleepd'; allowed: 'drop_tail', 'double_epd', 'dfba'"),
        (('receiver = "h7"', 'receiver = "h2"'), "topology: vc1 crosses no managed port: nothing would limit it"),
        (('metric = "vc_ratio"', 'metric = "ratio"'), "plots[0].metric: there is no metric of groups 'ratio'. Did you mean 'vc_ratio'?"),
        (('"mcr_met[vc2]"', '"mcr_met[vc3]"'), "expect[0].metric: there is no group of flows 'vc3'"),
    ],
)  # fmt: skip
def test_an_error_names_key_what_was_given_and_what_is_allowed(change: tuple[str, str], message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        definition(change)
    found = str(caught.value).splitlines()
    assert any(message in line for line in found), found


def test_a_qthresh_file_says_what_is_not_for_it() -> None:
    text = (EXPERIMENTS / "qthresh-table2.toml").read_text()
    with pytest.raises(ExperimentError, match=r"control\.scheduler: there is no key 'scheduler'"):
        load_text(
            text.replace('scheme = "qthresh"\n', 'scheme = "qthresh"\nscheduler = "wrr"\n', 1),
            str(EXPERIMENTS / "x.toml"),
        )
    vcs = '[[vcs]]\nname = "vc1"\nmcr_bps = 1_000\n[[append'
    with pytest.raises(ExperimentError, match="vcs: program 'qthresh' has no VCs"):
        load_text(text.replace("[[expect", vcs.replace("[[append", "[[expect"), 1), str(EXPERIMENTS / "x.toml"))
    with pytest.raises(ExperimentError, match=r"program: unknown program 'gfd'; did you mean 'gfr'\?"):
        load_text(text.replace("title", 'program = "gfd"\ntitle', 1), str(EXPERIMENTS / "x.toml"))
