# SPDX-License-Identifier: Apache-2.0
"""The reading commands on real switches with frames on the wire: status, flows, drops, vcs, log, export."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import pty
import select
import signal
import subprocess
from typing import Any

import pytest
from live_switch import RATE_BPS, LiveSwitch, wait_until
from test_controller_frames import ipv4_frame, send, udp_frame


def expired_frame() -> bytes:
    """An IPv4 packet whose TTL is used up, checksum right."""
    frame = bytearray(ipv4_frame(17, "10.0.1.1", "10.0.3.1", bytes(40)))
    frame[22] = 1
    check = int.from_bytes(frame[24:26], "big") + (63 << 8)
    frame[24:26] = ((check & 0xFFFF) + (check >> 16)).to_bytes(2, "big")
    return bytes(frame)


def drops_of(switch: LiveSwitch, *options: str) -> dict[str, dict[str, Any]]:
    """Reason → line."""
    return {line["reason"]: line for line in switch.json("drops", *options)}


def test_ports_and_status_say_the_same_of_what_a_port_dropped(wired_switch: LiveSwitch) -> None:
    if wired_switch.target == "bmv2":
        pytest.skip("BMv2 sets a rate in packets/s")
    wired_switch.fairlane("ports", "set", "s1:3", "--rate", "10kbps")
    send(wired_switch, *[udp_frame(1001)] * 80)

    def dropped() -> int:
        return wired_switch.json("status")["ports"][1]["dropped_packets"]

    wait_until("80 packets", lambda: wired_switch.json("ports", "-i", "0")[0]["received_packets"] >= 80)
    told = {reason: line["packets"] for reason, line in drops_of(wired_switch, "-i", "0").items()}
    (port,) = (row for row in wired_switch.json("ports", "-i", "0") if row["port"] == 3)
    assert (port["dropped_packets"], port["drops"]) == (dropped(), told)
    assert told.keys() == {"qthresh"}, "the program's decision, which the queue behind it does not know of"
    assert f"qthresh {dropped()}" in wired_switch.fairlane("ports", "-i", "0")


def test_flows_drops_status_log_and_export_of_a_topology(wired_switch: LiveSwitch) -> None:
    switch = wired_switch
    assert "nothing was dropped" in switch.fairlane("drops", "--interval", "0")
    for command in ("drops", "flows"):
        assert "s1 has no port 9; valid: 1, 3" in switch.fairlane(command, "s1:9", code=3)
    assert "no flow has an entry" in switch.fairlane("flows", "--interval", "0")
    assert "there is no event log yet" in switch.fairlane("log", code=3)
    with switch.loop():
        send(
            switch,
            udp_frame(1001),
            udp_frame(1002),
            *[expired_frame()] * 3,
            ipv4_frame(17, "10.0.1.1", "10.9.9.9", bytes(40)),
        )
        wait_until("two flows", lambda: len(switch.json("flows", "--interval", "0")) == 2)
        send(switch, *[udp_frame(1001)] * 5)
        wait_until("5 packets", lambda: switch.json("flows", "--interval", "0")[0]["packets"] == 5)
        flows = switch.json("flows", "--interval", "50ms")
        assert [(f["src_port"], f["port"], f["packets"], f["goodput_bps"]) for f in flows] == [
            (1001, 3, 5, 0.0),
            (1002, 3, 0, 0.0),
        ]
        assert flows[0]["qthresh_packets"] == switch.json("threshold", "show")[0]["qthresh_packets"]
        heads = " ".join(switch.fairlane("threshold", "show").split())
        assert "┃ Qthresh ┃ weight ┃" in heads, heads
        assert "udp 10.0.1.1:1001 > 10.0.3.1:5001" in switch.fairlane("flows", "-i", "50ms")

        one = switch.json("describe", "s1:3", "-i", "50ms")
        assert (one["port"]["port"], [row["port"] for row in one["ports"]], len(one["flows"])) == (3, [3], 2)
        assert one["port"]["rate_bps"] in (RATE_BPS, None)
        assert {event["port"] for event in one["events"]} <= {3}
        told = switch.fairlane("describe", "s1:3", "-i", "50ms")
        headings = next(line for line in told.splitlines() if "capacity" in line)
        assert headings.count(" class ") == 1, headings
        views = ("ports", "queues that", "managed ports", "flows", "drops: nothing was dropped")
        assert [view for line in told.splitlines() for view in views if line.startswith(view)] == [*views], told
        assert "udp 10.0.1.1:1001 > 10.0.3.1:5001" in told
        dropped = switch.json("describe", "s1:1", "-i", "0")["drops"]
        assert {row["reason"] for row in dropped} == {"no_route", "ttl"}
        assert "s1 has no port 9; valid: 1, 3" in switch.fairlane("describe", "s1:9", code=3)

        found = drops_of(switch, "--interval", "0")
        assert (found["ttl"]["packets"], found["ttl"]["port"], found["ttl"]["per_s"], found["ttl"]["by"]) == (
            3,
            1,
            None,
            "program",
        )
        assert found["no_route"]["meaning"] == "no route to the destination"
        assert drops_of(switch, "--interval", "50ms")["ttl"]["per_s"] == 0
        assert "TTL or hop limit used up" in switch.fairlane("drops", "-i", "0")
        assert drops_of(switch, "3", "-i", "0") == {}

        status = switch.json("status")
        (row,) = status["switches"]
        (policy,) = status["policies"]
        assert (row["program"], policy["mode"], policy["weight"]) == ("qthresh", "auto", 1.0)
        assert status["last_event"]["event"] in {"flow", "decision", "threshold"}
        text = switch.fairlane("status")
        assert "qthresh on s1; loop runs, 2 flows" in text
        assert "last event" in text

        file = switch.folder / "run.csv"
        done = switch.json("watch", "export", str(file), "--for", "0.2s", "--interval", "0.1s")
        assert done == {"snapshots": 2, "ended_early": False, "files": [{"file": str(file), "rows": 4}]}
    rows = list(csv.DictReader(file.open(encoding="utf-8")))
    assert [(r["switch"], r["port"], r["managed"]) for r in rows[:2]] == [("s1", "1", "False"), ("s1", "3", "True")]
    assert float(rows[3]["capacity_packets"]) == 50
    assert 0 <= float(rows[3]["tx_bps"]) < RATE_BPS / 4, "nothing leaves but the loop's probes, of 60 bytes"

    names = [event["event"] for event in switch.json("log", "--last", "1000")]
    assert names[0] == "started"
    assert names.count("flow") == 2
    assert [e["event"] for e in switch.json("log", "--event", "flow", "--last", "9")] == ["flow", "flow"]
    assert len(switch.json("log", "--last", "3", "-s", "s1")) == 3
    assert "unknown event 'flwo'; did you mean 'flow'?" in switch.fairlane("log", "-e", "flwo", code=3)
    assert "flow" in switch.fairlane("log", "--event", "flow")


def test_a_followed_log_tells_what_comes(switch: LiveSwitch) -> None:
    out = switch.folder / "followed"
    with switch.loop(), out.open("wb") as file:
        follower = subprocess.Popen(switch.command("log", "--follow", "--last", "1", "--json", "--event", "started", "--event", "changed"), stdout=file)  # fmt: skip
        try:
            wait_until("the event before", lambda: b"started" in out.read_bytes())
            switch.fairlane("threshold", "set", "7")
            wait_until("the event that came", lambda: b"changed" in out.read_bytes())
            follower.send_signal(signal.SIGINT)
            assert follower.wait(timeout=20) == 0
        finally:
            follower.kill()
    events = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [event["event"] for event in events] == ["started", "changed"]


def test_an_export_that_is_ended_keeps_what_is_there(switch: LiveSwitch) -> None:
    file = switch.folder / "run.jsonl"
    export = subprocess.Popen(switch.command("watch", "export", str(file), "--for", "1h", "--interval", "0.1s"), stdout=subprocess.PIPE, text=True)  # fmt: skip
    try:
        wait_until("two snapshots", lambda: file.exists() and file.read_bytes().count(b"\n") >= 2)
        export.send_signal(signal.SIGINT)
        printed, _ = export.communicate(timeout=20)
    finally:
        export.kill()
    assert export.returncode == 0
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert f"{len(lines)} rows of {len(lines)} snapshots" in " ".join(printed.split())
    assert lines[0]["switches"][0]["program"] == "qthresh"
    assert "is there already: another name, or --overwrite" in switch.fairlane("watch", "export", str(file), code=2)
    assert "the suffix says the format: .csv, .parquet, .jsonl, not '.txt'" in switch.fairlane(
        "watch", "export", "run.txt", code=2
    )
    assert "did you mean 'flows'?" in switch.fairlane("watch", "export", "run.csv", "--rows", "flow", code=3)


def test_parquet_has_a_file_a_kind_of_rows(switch: LiveSwitch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    file = switch.folder / "run.parquet"
    options = ("--rows", "ports", "--rows", "drops", "--for", "0.1s", "--interval", "0.1s")
    files = switch.json("watch", "export", str(file), *options)["files"]
    assert [one["file"] for one in files] == [str(switch.folder / f"run-{kind}.parquet") for kind in ("ports", "drops")]
    table: Any = parquet.read_table(files[0]["file"])
    assert table.num_rows == 2
    assert str(table.schema.field("waiting_packets").type) == "int64"
    drops = ["time_s", "switch", "port", "reason", "packets", "per_s", "by", "object"]
    assert parquet.read_table(files[1]["file"]).column_names == drops


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
def test_status_looks_again_and_again_until_it_is_ended(switch: LiveSwitch) -> None:
    for options in ((), ("--json",)):
        words = switch.command("status", "--watch", "--interval", "0.1s", *options)
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            looks = [next(line for line in process.stdout if "s1" in line) for _ in range(2)]
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 0
        if options:
            assert [json.loads(look)["ports"][0]["switch"] for look in looks] == ["s1", "s1"]


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
def test_status_is_drawn_in_the_other_screen_of_a_terminal(switch: LiveSwitch) -> None:
    master, slave = pty.openpty()
    words = switch.command("status", "--watch", "--interval", "0.1s")
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen(words, stdin=slave, stdout=slave, env=environment, start_new_session=True) as process:
        os.close(slave)
        shown = b""

        def seen(text: bytes) -> bool:
            nonlocal shown
            with contextlib.suppress(OSError):  # the other end is closed
                shown += os.read(master, 65_536) if select.select([master], [], [], 0.1)[0] else b""
            return text in shown

        wait_until("the other screen", lambda: seen(b"\x1b[?1049h"))
        wait_until("the managed port", lambda: seen(b"s1:3"))
        process.send_signal(signal.SIGTERM)
        wait_until("the screen before", lambda: seen(b"\x1b[?1049l"))
        assert process.wait(timeout=30) == 0
    os.close(master)
