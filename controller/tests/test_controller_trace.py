# SPDX-License-Identifier: Apache-2.0
"""`fairlane trace` against real switches: what it shows, that it changes nothing, real packets, refusals."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller import logs
from fairlane_controller.cli.trace import outcome, parse_filter, show_value
from fairlane_controller.program.registry import load_program
from fairlane_controller.switch import frames
from live_switch import QUEUE_PACKETS, LiveSwitch, wait_until

TCP = "tcp:10.0.1.1:4000>10.0.3.3:5001,len=1000"


@pytest.fixture
def embedded(wired_switch: LiveSwitch) -> LiveSwitch:
    """The embedded switch with wires."""
    if wired_switch.target != "embedded":
        pytest.skip("traces are the embedded switch's own")
    return wired_switch


def steps(trace: dict[str, Any], name: str) -> dict[str, Any]:
    """The ingress step whose name ends so."""
    (found,) = [step for step in trace["rounds"][0]["ingress"] if step["name"].endswith(name)]
    return found


def test_a_routed_packet_is_shown_and_changes_nothing(embedded: LiveSwitch) -> None:
    before = embedded.json("status")["ports"]
    trace = embedded.json("trace", "s1:1", "--packet", TCP)
    (copy,) = trace["copies"]
    assert (copy["fate"], copy["port"], copy.get("drop")) == ("transmit", 3, None)
    assert copy["queue"]["limit_packets"] == QUEUE_PACKETS
    assert copy["queue"]["admits"] is True
    out = bytes.fromhex(copy["frame"])
    sent = frames.packet(TCP)
    assert out[:6] == bytes.fromhex("080000000333")  # the next hop's address
    assert out[22] == sent[22] - 1  # TTL
    assert out[34:] == sent[34:]
    route = steps(trace, "ipv4_lpm")
    assert (route["hit"], route["action"].rsplit(".")[-1], route["entry"]) == (
        True,
        "forward",
        "hdr.ipv4.dst=0x0a000300/24",
    )
    assert route["source"]["file"].endswith("route.p4")
    for _ in range(3):
        again = embedded.json("trace", "s1:1", "--packet", TCP)
        assert again["copies"][0]["frame"] == copy["frame"]
    assert embedded.json("status")["ports"] == before
    assert embedded.json("flows", "--interval", "0s") == []


def test_a_drop_says_why_and_where(embedded: LiveSwitch) -> None:
    text = embedded.fairlane("trace", "s1:1", "--packet", "tcp:10.0.1.1:1>10.99.0.1:2")
    assert "dropped by the program: ingress_drop at p4src/qthresh.p4:" in text
    assert "reason no_route: no route to the destination" in text
    assert (
        "table LaneIngress.route.ipv4_lpm, action LaneIngress.route.no_route, hit False, key hdr.ipv4.dst=10.99.0.1"
        in " ".join(text.replace("│", "").split())
    )
    assert "reason ttl" in embedded.fairlane("trace", "s1:1", "--packet", f"{TCP},ttl=1")
    full = embedded.fairlane("trace", "s1:1", "--packet", TCP, "--full")
    short = embedded.fairlane("trace", "s1:1", "--packet", TCP)
    assert "leaves by port 3, queue 0, 1014 bytes (unicast)" in short
    assert len(full.splitlines()) > len(short.splitlines())


@pytest.mark.parametrize(("number", "program"), [(11, "qthresh"), (11, "codel"), (12, "qthresh"), (14, None)])
def test_a_reason_is_explained_by_the_program_that_the_switch_runs(number: int, program: str | None) -> None:
    """Programs share the numbers from 11 on."""
    change = {"name": "metadata_t.reason", "width": 4, "from": "0x0", "to": hex(number)}
    drop = {"by": "program", "reason": "ingress_drop"}
    trace = {"rounds": [{"ingress": [{"changes": [change]}], "fate": "drop", "drop": drop}]}
    own = load_program(program) if program else None
    told = f", reason {own.reasons[number].name}: {own.reasons[number].meaning}" if own else ""
    assert outcome(trace, own) == [f"dropped by the program: ingress_drop{told}"]


def test_real_packets_that_match_are_shown(embedded: LiveSwitch) -> None:
    words = ("--live", "--filter", "src=10.0.1.1,dport=5001", "--count", "2", "--timeout", "60s", "--json")
    out = embedded.folder / "live.jsonl"
    # Into a file: a pipe is too small for two traces.
    with (
        out.open("wb") as output,
        subprocess.Popen(embedded.command("trace", "s1:1", *words), stdout=output, stderr=subprocess.PIPE) as process,
    ):
        try:
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
                wire.bind((f"{embedded.interfaces[1]}x", 0))
                other = frames.packet(TCP.replace("5001", "5002"))

                def ended() -> bool:
                    for frame in (other, frames.packet(TCP)):
                        wire.send(frame)
                    return process.poll() is not None

                wait_until("two packets", ended, 40.0)
            assert process.stderr is not None
            assert process.returncode == 0, process.stderr.read()
        finally:
            process.kill()
    shown = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [one["frame"] for one in shown] == [frames.packet(TCP).hex()] * 2
    assert all(one["ingress_port"] == 1 and one["copies"][0]["port"] == 3 for one in shown)


def test_a_live_trace_without_a_packet_ends_with_its_time(embedded: LiveSwitch) -> None:
    words = ("trace", "s1:1", "--live", "--filter", "src=192.0.2.1", "--timeout", "1s")
    assert "0 of 1 packet that match came within 1s" in embedded.fairlane(*words, code=6)


def test_a_filter_is_as_the_switch_takes_it() -> None:
    assert parse_filter("") == {}
    found = parse_filter("src=[2001:db8::1], dport=5001,protocol=udp")
    assert found == {"src": "2001:db8::1", "dport": 5001, "protocol": 17}


def test_mistakes_and_other_targets(wired_switch: LiveSwitch) -> None:
    if wired_switch.target == "bmv2":
        text = wired_switch.fairlane("trace", "s1:1", "--packet", TCP, code=5)
        assert "at 127.0.0.1" in text
        return
    for words, code, said in (
        (("s1:2", "--packet", TCP), 3, "there is no port 2; there are 1, 3, 510"),
        (("s2:1", "--packet", TCP), 3, "unknown switch 's2'"),
        (("s1:1",), 2, "name one of --packet, --pcap, --hex and --live"),
        (("s1:1", "--packet", TCP, "--hex", "00"), 2, "name one of --packet"),
        (("s1:1", "--packet", TCP, "--live"), 2, "name one of --packet"),
        (("s1:1", "--packet", TCP, "--filter", "dport=1"), 2, "name one of --packet"),
        (("s1:1", "--hex", "0g"), 2, "--hex: must be pairs of hexadecimal digits"),
        (("s1:1", "--live", "--filter", "scr=1"), 2, "expected one of `ingress_port`, `src`"),
        (("s1:1", "--live", "--filter", "dport=http"), 2, "dport: "),
        (("s1:1", "--live", "--filter", "src=nobody"), 2, "match.src: invalid IP address"),
        (("s1:1", "--live", "--count", "0"), 2, "is not within 1 to 1000"),
        (("s1:1", "--packet", TCP, "--pcap", "a.pcap"), 3, "--pcap a.pcap: cannot be read"),
        (("s1:999", "--packet", TCP), 3, "there is no port 999; there are 1, 3, 510"),
    ):
        assert said in wired_switch.fairlane("trace", *words, code=code), words


def test_the_commands_of_the_document_run(embedded: LiveSwitch) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")
    lines = [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("fairlane trace ")]
    assert len(lines) == 5
    for words in lines:
        if "--live" in words:  # nothing is sent here, so it ends by its time limit
            assert "0 of 5 packets" in embedded.fairlane(*words[:-1], "1s", code=6)
            continue
        assert "s1:1" in embedded.fairlane(*words) or "--json" in words


def test_values_have_the_form_of_their_kind() -> None:
    assert show_value("hdr.ipv4.dst", 32, "0x0a000101") == "10.0.1.1"
    assert show_value("ethernet.src", 48, "0x80000000111") == "08:00:00:00:01:11"
    assert show_value("ipv6.dst", 128, "0x20010db8000000000000000000000002") == "2001:db8::2"
    assert show_value("tcp.seq_no", 32, "0xffffffff") == "4294967295"


# ---- what a loop says on standard error ----------------------------------------------------------------------------


def test_a_loop_writes_its_events_to_standard_error(wired_switch: LiveSwitch) -> None:
    with wired_switch.loop():
        wired_switch.fairlane("threshold", "set", "7")
    lines = (wired_switch.folder / "loop.log").read_text(encoding="utf-8").splitlines()
    (took_over,) = (line for line in lines if 'event="took_over"' in line)
    assert "INFO fairlane_controller.loop: we are the primary controller" in took_over
    assert 'switch="s1"' in took_over
    assert any('event="changed"' in line for line in lines)
    assert not any('event="decision"' in line for line in lines)


def test_lines_for_people_and_levels(capsys: pytest.CaptureFixture[str]) -> None:
    with logs.printed():
        logs.log_event("error", {"switch": "s1", "message": "it is gone", "code": "x"})
        logs.log_event("took_over", {"switch": "s1"})
    logs.log_event("error", {"message": "nobody hears"})
    (line,) = capsys.readouterr().err.splitlines()
    assert line[10] == "T"
    assert line.endswith('WARNING fairlane_controller.loop: it is gone event="error" switch="s1" code="x"')
