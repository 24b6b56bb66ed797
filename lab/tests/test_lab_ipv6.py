# SPDX-License-Identifier: Apache-2.0
"""`tcp.ipv6`: the same runs over IPv6, in the simulator and on Linux in virtual time, with the controller in the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import load_text
from fairlane_lab.problems import ExperimentError
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.runners import sim
from fairlane_lab.scenario import Scenario
from fairlane_lab.sim.kernel import BUILT
from fairlane_lab.testbed.grouping import groups_of
from sim_scenarios import RENO, VEGAS, scenario

built = pytest.mark.skipif(not (BUILT / "linux").exists(), reason="no kernel is built: make kernel")
FRAME_BYTES = 1514
FILE = """
name = "versions"
title = "Versions"
paper = "none"
reproduces = "nothing"
what = "Reno and Vegas over both versions of IP, in frames of 1514 bytes."
runtimes = ["sim"]
[[cases]]
label = "IPv4"
mss_bytes = 1460
ipv6 = false
[[cases]]
label = "IPv6"
mss_bytes = 1440
ipv6 = true
[topology]
base = "dumbbell"
[[flows]]
name = "reno"
sender = "h1"
receiver = "h3"
[[flows]]
name = "vegas"
sender = "h2"
receiver = "h3"
variant = "vegas"
[tcp]
delayed_ack = false
[control]
scheme = "qthresh"
threshold = "auto"
[run]
duration_s = 60
warmup_s = 20
[run.draws]
fixed = "numbers are compared"
"""


BOTH = FILE.replace("[topology]", '[sets]\nipv6 = "flows.vegas.tcp.ipv6"\n[topology]')


def points(file: str = FILE) -> dict[str, Scenario]:
    found = expand(load_text(file, "versions.toml"), Selection(runtime="sim"))
    return {each.point: replace(each, series=True) for each in found}


def goodputs(result: RunResult) -> list[float]:
    return [flow.goodput_bps for flow in result.flows]


def check_versions(run: Callable[[Scenario], RunResult]) -> None:
    """All share the line; IPv6 carries 1440 bytes where IPv4 carries 1460. The controller numbers the flows of either version."""
    scenarios = {**points(), "both": points(BOTH)["IPv6"]}
    results = {label: run(each) for label, each in scenarios.items()}
    carried = {label: sum(goodputs(result)) for label, result in results.items()}
    line_bps = results["IPv4"].ports[0].rate_bps
    assert line_bps
    for label, mss_bytes in (("IPv4", 1460), ("IPv6", 1440), ("both", 1440)):
        reno, vegas = goodputs(results[label])
        assert min(reno, vegas) / max(reno, vegas) > 0.8, label
        least, most = mss_bytes / FRAME_BYTES, mss_bytes / (FRAME_BYTES if label != "both" else FRAME_BYTES - 20)
        assert 0.97 * least < carried[label] / line_bps < 1.001 * most, label
        flows = {event["flow"] for event in results[label].events if event["event"] == "flow"}
        assert sum("[fd00::a00:101]:10000" in flow for flow in flows) == (label == "IPv6"), flows
        assert sum("[fd00::a00:202]:10001" in flow for flow in flows) == (label != "IPv4"), flows
        assert {series.flow for series in results[label].series if series.metric == "queue_packets"} >= {
            "reno",
            "vegas",
        }
    assert carried["IPv6"] / carried["IPv4"] == pytest.approx(1440 / 1460, rel=0.01)


def test_versions_share_alike_in_the_simulator() -> None:
    check_versions(sim.run)
    addresses = sim.run(points(BOTH)["IPv6"]).about["addresses"]
    assert addresses["reno"].startswith("tcp 10.0.1.1:10000 > ")
    assert addresses["vegas"].startswith("tcp [fd00::a00:202]:10001 > [fd00::")


@built
def test_versions_share_alike_on_linux() -> None:
    check_versions(sim.run_kernel)
    run = points()["IPv6"]
    assert sim.run_kernel(run) == sim.run_kernel(run)


def test_a_weight_holds_over_ipv6_too() -> None:
    run = points(FILE.replace('variant = "vegas"', 'variant = "reno"\nweight = 2'))["IPv6"]
    reno, heavy = goodputs(sim.run(run))
    assert heavy / reno == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("mss_bytes = 1440\nipv6", "mss_bytes = 1441\nipv6"), "flows[0].tcp.mss_bytes: 1441 is too much: a packet of 1500 bytes over IPv6 has room for 1440"),
        (("ipv6 = true", "ipv6 = 6"), "tcp.ipv6"),
        (("[[flows]]\nname = \"reno\"", "[[flows]]\nname = \"udp\"\nsender = \"h2\"\nreceiver = \"h3\"\napp = { kind = \"cbr_udp\", rate_bps = 1000, payload_bytes = 1453 }\n[[flows]]\nname = \"reno\""), "flows[0].app.payload_bytes: 1453 is too much: a packet of 1500 bytes over IPv6 has room for 1452"),
    ],
)  # fmt: skip
def test_what_has_no_room_or_is_no_answer_is_named(change: tuple[str, str], message: str) -> None:
    assert change[0] in FILE
    with pytest.raises(ExperimentError) as caught:
        points(FILE.replace(*change))
    assert message in str(caught.value)


def test_what_has_no_ipv6_is_refused() -> None:
    over_ipv6 = replace(RENO, tcp={"ipv6": True})
    with pytest.raises(RunError, match="host h1 has no IPv6 address: give it `ipv6` in the topology"):
        sim.run(scenario(over_ipv6, VEGAS))
    refused: list[str] = []
    assert groups_of([scenario(over_ipv6)], lambda _, error: refused.append(str(error))) == []
    assert "tcp.ipv6: runs in Mininet are over IPv4" in refused[0]
    refused.clear()
    assert (
        groups_of([scenario(replace(over_ipv6, variant="ena-sack"))], lambda _, error: refused.append(str(error))) == []
    )
    assert refused


@built
def test_a_host_program_that_reads_ipv4_only_is_refused() -> None:
    run = points(FILE.replace('variant = "vegas"', 'variant = "ena-sack"'))["IPv6"]
    with pytest.raises(RunError, match="flow vegas: variant 'ena-sack' has a host program that reads IPv4 only"):
        sim.run_kernel(run)
