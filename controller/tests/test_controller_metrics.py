# SPDX-License-Identifier: Apache-2.0
"""The metrics: their names are stable and documented, their values are the snapshot's, the dashboard asks for nothing else."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from dataclasses import replace
from typing import Any

import live_rows
import pytest
import unused_ports
from fairlane_controller.live.model import Snapshot
from fairlane_controller.metrics.exporter import Scrape, metrics_of
from fairlane_controller.program.names import program_names
from fairlane_controller.program.registry import load_program
from live_switch import REPOSITORY, LiveSwitch, wait_until
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

METRICS: dict[str, Any] = {**metrics_of(load_program(name) for name in program_names())}
LABELS = {name: metric._labelnames[1:] for name, metric in METRICS.items()}
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def series_of(text: str) -> Series:
    """Every sample of a scrape by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(snapshot: Snapshot) -> Series:
    """What Prometheus would get of one snapshot."""
    return series_of(generate_latest(Scrape(replace(snapshot, topology="lab"))).decode())


def value(series: Series, name: str, **labels: str) -> float | None:
    """One sample of the topology `lab`."""
    return series.get((name, tuple(sorted({"topology": "lab", **labels}.items()))))


def names(series: Series) -> set[str]:
    """The metrics that are there."""
    return {name for name, _ in series}


def test_values_are_the_snapshots() -> None:
    got = scrape(live_rows.picture())
    place = {"switch": "s1", "port": "3"}
    assert value(got, "fairlane_queue_packets", **place) == 9
    assert value(got, "fairlane_threshold_packets", **place, **{"class": "0"}) == 5
    assert value(got, "fairlane_drops_total", **place, reason="qthresh", by="program") == 2073
    assert value(got, "fairlane_drops_total", **place, reason="port_full", by="program") == 0
    flow = "tcp 10.0.1.3:40002 > 10.0.3.3:5001"
    assert value(got, "fairlane_flow_goodput_bits_per_second", **place, flow=flow) == 102_000
    assert value(got, "fairlane_measured_t_res_seconds", **place) == 0.00726
    assert value(got, "fairlane_measurement_age_seconds", **place, quantity="t_res") == 12
    assert value(got, "fairlane_loop_primary", switch="s2") == 1
    assert value(got, "fairlane_up", switch="s1") == 1


def test_what_is_not_known_has_no_series() -> None:
    got = scrape(live_rows.picture(switches=(live_rows.switch_row(), live_rows.gone()), loop=None))
    assert value(got, "fairlane_up", switch="s2") == 0
    assert value(got, "fairlane_loop_up") == 0
    assert "fairlane_measured_tau_seconds" not in names(got)
    assert "fairlane_loop_primary" not in names(got)
    assert value(got, "fairlane_queue_packets", switch="s2", port="1") is None


def test_series_of_flows_are_bounded() -> None:
    got = scrape(live_rows.picture(flows=3000))
    assert sum(1 for name, _ in got if name == "fairlane_flow_goodput_bits_per_second") == 50
    assert value(got, "fairlane_flows", switch="s1", port="3") == 3000


def test_vcs() -> None:
    picture = live_rows.gfr_picture()
    got = scrape(replace(picture, ports=tuple(replace(one, measured=live_rows.MEASURED) for one in picture.ports)))
    place = {"switch": "s1", "port": "6"}
    assert value(got, "fairlane_vc_queue_cells", **place, vc="vc3") == 120
    assert value(got, "fairlane_vc_active", **place, vc="vc2") == 0
    assert value(got, "fairlane_queue_cells", **place) == 1200
    assert value(got, "fairlane_measured_bandwidth_bits_per_second", **place) == 2_000_000
    assert "fairlane_measured_t_res_seconds" not in names(got), "GFR does not measure it"


def test_the_metrics_of_the_alarms_exist() -> None:
    text = (REPOSITORY / "docs" / "operate.md").read_text(encoding="utf-8")
    named = set(re.findall(r"fairlane_(?!controller|tree)[a-z_]+", text))
    assert len(named) > 6
    assert named <= set(METRICS)


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    board = json.loads((REPOSITORY / "docs" / "grafana-fairlane.json").read_text(encoding="utf-8"))
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    asked: set[str] = set()
    for panel in panels:
        assert panel["targets"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            found = re.findall(r"(fairlane_\w+)\{([^}]*)\}", target["expr"])
            assert found, target["expr"]
            for name, labels in found:
                asked.add(name)
                matched = set(re.findall(r"(\w+)=~", labels))
                assert matched <= {"topology", *LABELS[name]}, f"{panel['title']}: {name} has no such label"
                legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                assert legend <= {"topology", *LABELS[name]}, f"{panel['title']}: {target['legendFormat']}"
                if METRICS[name].type == "counter" and panel["type"] == "timeseries":
                    assert f"rate({name}" in target["expr"], f"{panel['title']}: a counter only ever rises"
    for variable in board["templating"]["list"]:
        asked |= set(re.findall(r"fairlane_\w+", json.dumps(variable)))
    assert asked <= set(METRICS)
    assert len(asked) > 25
    ends = [p["gridPos"] for p in board["panels"]]
    for i, a in enumerate(ends):
        for b in ends[i + 1 :]:
            apart = (
                a["x"] + a["w"] <= b["x"]
                or b["x"] + b["w"] <= a["x"]
                or a["y"] + a["h"] <= b["y"]
                or b["y"] + b["h"] <= a["y"]
            )
            assert apart, "panels lie over each other"


def test_a_real_scrape(switch: LiveSwitch) -> None:
    got = series_of(switch.fairlane("watch", "metrics", "--once"))
    lab = {"topology": switch.folder.name}
    assert got[("fairlane_up", tuple(sorted({**lab, "switch": "s1"}.items())))] == 1
    assert names(got) <= set(METRICS)
    assert ("fairlane_queue_packets" in names(got)) == (switch.target == "embedded"), "BMv2 reads no registers"
    assert "fairlane_port_utilisation_ratio" in names(got), "also the first scrape has rates"


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
def test_the_loop_serves_them_too(switch: LiveSwitch) -> None:
    port = unused_ports.unused()
    with switch.loop("--metrics", f"127.0.0.1:{port}"):
        wait_until("the loop to be the primary", lambda: switch.loop_status()["connected"])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
            kind, text = answer.headers["Content-Type"], answer.read().decode()
        assert kind.startswith("text/plain")
        got = series_of(text)
        lab = {"topology": switch.folder.name}
        assert got[("fairlane_loop_primary", tuple(sorted({**lab, "switch": "s1"}.items())))] == 1
        assert "fairlane_queue_packets" in names(got)


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
def test_an_address_that_cannot_be_had_is_said_before_anything_runs(switch: LiveSwitch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert f"cannot listen on {address}" in switch.fairlane("run", "--metrics", address, code=2)
    assert "could read along" in switch.fairlane("run", "--metrics", "0.0.0.0:9464", code=2)
    assert not (switch.folder / "controller.sock").exists()


def test_names_are_what_prometheus_wants() -> None:
    for name, metric in METRICS.items():
        assert re.fullmatch(r"fairlane_[a-z0-9_]+", name)
        assert metric.documentation.endswith(".")
