# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks do with their measurements; the measuring itself is `make bench`."""

from __future__ import annotations

import json
from pathlib import Path

import netsim
import p4runtime
import pipeline
import pytest
import topology
from fairlane_topology.topology import load as load_topology
from summary import Run
from testbed import ROOT, entries, start_ours


def test_the_examples_table_is_read_by_column() -> None:
    text = "p.json\n   flows    path  total ns   load\n       1   plain     353.6     30\n   65536 counted    1065.5     30\n"
    assert pipeline.parse(text) == [
        {"flows": 1.0, "path": "plain", "total_ns": 353.6, "load": 30.0},
        {"flows": 65536.0, "path": "counted", "total_ns": 1065.5, "load": 30.0},
    ]


def test_gfr_is_judged_beside_qthresh_with_as_many_flows() -> None:
    qthresh = [
        {"flows": flows, "path": path, "total_ns": ns}
        for flows, path, ns in ((6.0, "plain", 100.0), (6.0, "counted", 200.0), (1000.0, "counted", 300.0))
    ]
    gfr = [{"flows": 6.0, "path": "edge", "total_ns": 301.0}, {"flows": 1000.0, "path": "core", "total_ns": 450.0}]
    run = Run()
    pipeline.add_gfr(run, qthresh, gfr)
    assert [(row["name"], row["ok"]) for row in run.rows] == [
        ("with policing, 6 VCs", False),
        ("without policing, 1,000 VCs", True),
    ]


def test_ena_is_judged_beside_qthresh_where_every_packet_goes() -> None:
    beside = [
        {"flows": 1000.0, "path": "plain", "total_ns": 100.0},
        {"flows": 1000.0, "path": "counted", "total_ns": 200.0},
    ]
    times = {"plain": 200.0, "acks": 321.0, "data": 320.0, "full": 999.0, "errors": 400.0, "marks": 400.0}
    run = Run()
    pipeline.add_ena(run, beside, [{"flows": 1000.0, "path": path, "total_ns": ns} for path, ns in times.items()])
    assert [row["ok"] for row in run.rows] == [True, False, True, True, True, True]
    assert [bool(row["aim"]) for row in run.rows] == [True, True, True, False, False, False]


def test_output_without_a_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="no table in what ns_per_packet printed"):
        pipeline.parse("thread 'main' panicked")


def test_the_simulators_rows_are_json_lines() -> None:
    assert netsim.parse('warning\n{"flows": 2, "packets_per_s": 1.0}\n') == [{"flows": 2, "packets_per_s": 1.0}]
    with pytest.raises(ValueError, match="no rows in what packets_per_second printed"):
        netsim.parse("error")


def test_the_papers_links_run_in_virtual_time() -> None:
    links = netsim.table2()
    assert [link["case"] for link in links] == ["512k-5ms", "1.5M-2ms", "2M-2ms", "5M-2ms"]
    assert all(link["virtual_s"] > 0 and link["wall_s"] > 0 for link in links)


def test_all_of_paper_000_is_every_qthresh_experiment_but_those_beyond_it() -> None:
    there = {path.stem for path in (ROOT / "lab" / "experiments").glob("qthresh-*.toml")}
    assert set(netsim.PAPER) == there - {"qthresh-phase", "qthresh-selftuning", "qthresh-unseen", "qthresh-ecn"}


def test_p4runtime_is_judged_beside_bmv2_where_it_was_there() -> None:
    samples = {"writes, our client: fairlane-switch": [1.0, 3.0], "writes, our client: simple_switch_grpc": [2.0, 1.0]}
    run = Run()
    p4runtime.add_rows(run, samples, 65_536)
    assert {row["group"] for row in run.rows} == {"P4Runtime, 65,536 writes, our client (the best of 2 rounds)"}
    assert [(row["name"], row["value"], row["ok"]) for row in run.rows] == [
        ("fairlane-switch", 3.0, True),
        ("fairlane-switch beside BMv2", 1.5, True),
        ("simple_switch_grpc", 2.0, True),
    ]
    alone = Run()
    p4runtime.add_rows(alone, {"reads, our client: fairlane-switch": [5.0]}, 10)
    assert [row["aim"] for row in alone.rows] == [""]


def test_p4runtime_s_entries_are_as_many_flows() -> None:
    flows = p4runtime.flows(65_536)
    matches = {str(flow.match) for flow in flows}
    assert len(matches) == 65_536


def test_what_was_written_is_read_back_by_both_clients() -> None:
    for measure in (p4runtime.measure_requests_made_before, p4runtime.measure_finsy):
        with start_ours((), []) as switch:
            assert min(measure(switch.grpc, 1500)) > 0


def test_every_flow_has_its_entry_and_its_slot() -> None:
    flows = [entry for entry in entries(100) if entry.table_id == "flow_v4"]
    assert len(flows) == 100


def test_the_large_topology_is_one_that_the_launcher_takes(tmp_path: Path) -> None:
    file = tmp_path / "line.json"
    file.write_text(json.dumps(topology.line()))
    assert len(load_topology(file).switches) == topology.SWITCHES


def test_a_lost_ping_and_a_launcher_that_failed_are_no_measurement() -> None:
    clock = "1795920005.421379799\n"
    assert topology.parse(f"{clock}*** Results: 0% dropped (380/380 received)\n{clock}") == [1795920005.421379799] * 2
    for output in (f"{clock}*** Results: 1% dropped (379/380 received)\n{clock}", "error: no such interface"):
        with pytest.raises(ValueError, match="did not do what it was told"):
            topology.parse(output)
