# SPDX-License-Identifier: Apache-2.0
"""The server of the live page: where it may listen, what it answers to whom, and its stream; the page itself is in the browser's test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import live_rows
import pytest
from fairlane_controller.cli.main import main
from fairlane_controller.errors import FairlaneError
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.sampler import Sampler
from fairlane_controller.live.source import LiveSource
from fairlane_controller.web.hub import OBJECTS_A_PORT, OBJECTS_IN_TABLES, Feed, picture_of, point_of
from fairlane_controller.web.server import STATIC, Listen, page_app, parse_listen, served
from live_switch import LiveSwitch
from test_controller_live_source import targets_of
from test_controller_web_connections import NO_TOPOLOGY

TIMEOUT_S = 20.0


@pytest.mark.parametrize("text", ["127.0.0.1:8080", "[::1]:0", "localhost:65535"])
def test_loopback_needs_no_certificate(text: str) -> None:
    assert parse_listen(text, "--listen").tls is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8080", "--listen '8080': must be HOST:PORT, e.g. 127.0.0.1:8080"),
        ("127.0.0.1:70000", "must be HOST:PORT"),
        ("0.0.0.0:8080", "--listen 0.0.0.0:8080: everybody who reaches 0.0.0.0 could read along: give --tls-cert"),
        ("example.net:8080", "everybody who reaches example.net could read along"),
    ],
)
def test_other_addresses_are_refused(text: str, message: str) -> None:
    with pytest.raises(FairlaneError) as caught:
        parse_listen(text, "--listen")
    assert message in caught.value.message


def test_certificates_are_checked_first(tmp_path: Path) -> None:
    cert, key, other = (tmp_path / name for name in ("cert.pem", "key.pem", "ca.pem"))
    wrong: list[dict[str, Any]] = [{"tls_cert": cert}, {"tls_key": key}, {"tls_client_ca": other}]
    for files in wrong:
        with pytest.raises(FairlaneError, match="--tls-cert and --tls-key go together, and --tls-client-ca needs both"):
            parse_listen("127.0.0.1:0", "--listen", **files)
    with pytest.raises(FairlaneError, match="No such file"):
        parse_listen("0.0.0.0:0", "--listen", tls_cert=cert, tls_key=key)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("localhost:8080", True),
        ("LOCALHOST", True),
        ("monitor.lan:8080", True),
        ("evil.example:8080", False),
        ("", False),
        ("localhost.evil.example", False),
    ],
)
def test_only_our_own_names(host: str, allowed: bool) -> None:
    assert Listen("127.0.0.1", 8080, names=("monitor.lan",)).answers_to(host) is allowed


def test_a_point_is_small_and_bounded() -> None:
    point = point_of(live_rows.picture(flows=500))
    port = point["ports"]["s1:3"]
    assert list(point["ports"]) == ["s1:3"], "managed ports only"
    flow = "tcp 10.0.2.250:40499 > 10.0.3.3:5001"
    assert len(port["queue"]) == OBJECTS_A_PORT + 1
    assert [port[chart][flow] for chart in ("queue", "control", "goodput")] == [1, 5, 599_000]
    assert (port["queue"]["all"], port["control"]["class 0"], port["drops"]) == (9, 5, {"qthresh": 5.9})
    assert len(json.dumps(point)) < 3000
    table = picture_of(live_rows.picture(flows=500))["ports"]["s1:3"]["objects"]
    assert len(table["rows"]) == OBJECTS_IN_TABLES
    assert table["title"] == f"flows ({OBJECTS_IN_TABLES}, those that send most of 500)"
    port = point_of(live_rows.gfr_picture())["ports"]["s1:6"]
    assert [port["control"][f"vc1 {name}"] for name in ("w_i", "r_i")] == [9_200_000, 9_100_000]
    assert port["queue"] == {"all": 1200, "LBO": 1000, "HBO": 3000, "vc0": 0, "vc1": 40, "vc2": 80, "vc3": 120}


def test_the_page_gets_words_and_knows_no_program() -> None:
    shown = picture_of(live_rows.picture(switches=(live_rows.switch_row(), live_rows.gone())))
    assert shown["loop"] == ("good", "loop runs")
    assert shown["problems"] == [("bad", "s2 is gone: switch s2 at 127.0.0.1:50052 does not answer")]
    port = shown["ports"]["s1:3"]
    assert port["tiles"][:3] == [
        ("sent", "1.98 Mbit/s", "99 % of 2 Mbit/s", False),
        ("waiting", "9 packets", "of 50", False),
        ("drops", "5.9/s", "2,073 in all", False),
    ]
    assert {("Qthresh", "5 packets", "", False), ("scheme", "qthresh", "", False)} < {*port["tiles"]}
    assert ("T_res", "7.26 ms", "12 s ago", True) in port["tiles"]
    head, row = port["objects"]["head"], port["objects"]["rows"][0]
    assert head[:3] == ["flow", "waiting", "Qthresh"]
    assert 1 + len(row["cells"]) == len(head)
    assert (row["name"], row["cells"][0]) == ("tcp 10.0.1.3:40002 > 10.0.3.3:5001", "2")
    assert [head[1 + at] for at in row["bad"]] == ["drops/s"]
    assert port["charts"]["control"] == ("Qthresh", "packets")
    assert port["references"] == ["line", "class 0"]
    gfr = picture_of(live_rows.gfr_picture())["ports"]["s1:6"]
    assert gfr["charts"]["queue"] == ("Queue", "cells")
    assert ("waiting", "1,200 cells", "of 4,000", False) in gfr["tiles"]
    ports = tuple(live_rows.port_row(f"s{n}") for n in range(1, 51))
    many = picture_of(
        live_rows.picture(500, ports=ports, switches=tuple(live_rows.switch_row(p.switch) for p in ports))
    )
    assert len(many["ports"]["s1:3"]["objects"]["rows"]) == OBJECTS_A_PORT
    assert picture_of(live_rows.picture(loop=None))["loop"] == ("warn", "no control loop")


def test_the_page_loads_nothing_from_anywhere_else() -> None:
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "//" not in "".join(part for part in text.split() if "://" in part), path
        assert "innerHTML" not in text
        assert "eval(" not in text


@contextlib.asynccontextmanager
async def page_of(switch: LiveSwitch, **options: Any) -> AsyncGenerator[tuple[aiohttp.ClientSession, str, Feed]]:
    """A page server on a live switch."""
    listen = Listen("127.0.0.1", 0)
    feed = Feed(targets_of(switch), period_s=0.1, **options)
    async with served(page_app(feed, listen), listen) as port, aiohttp.ClientSession() as session:
        yield session, f"http://127.0.0.1:{port}", feed


async def read_event(stream: aiohttp.StreamReader) -> Any:
    """One server-sent event."""
    while True:
        line = (await asyncio.wait_for(stream.readline(), TIMEOUT_S)).decode().rstrip("\n")
        if line.startswith("data: "):
            return json.loads(line[6:])


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
async def test_routes_and_what_they_say_of_themselves(switch: LiveSwitch) -> None:
    async with page_of(switch) as (session, url, _):
        for path, kind in (
            ("/", ["text/html"]),
            ("/static/app.js", ["text/javascript", "application/javascript"]),
            ("/static/style.css", ["text/css"]),
        ):
            answer = await session.get(url + path)
            assert answer.status == 200
            assert answer.content_type in kind
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert (await session.get(f"{url}/static/..%2fserver.py")).status == 404
        assert (await session.get(url, headers={"Host": "evil.example"})).status == 421
        for method in ("POST", "PUT", "DELETE"):
            refused = await session.request(method, f"{url}/api/stream")
            assert refused.status == 405
            assert "Content-Security-Policy" in refused.headers


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
async def test_viewers_share_one_sampler_and_the_history(switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[float] = []
    plain = LiveSource.snapshot

    async def counted(source: LiveSource) -> Any:
        taken.append(asyncio.get_running_loop().time())
        return await plain(source)

    shown: list[Snapshot] = []

    def drawn(snapshot: Snapshot) -> dict[str, Any]:
        shown.append(snapshot)
        return picture_of(snapshot)

    monkeypatch.setattr(LiveSource, "snapshot", counted)
    monkeypatch.setattr("fairlane_controller.web.hub.picture_of", drawn)
    async with page_of(switch, max_viewers=3) as (session, url, feed):
        streams = [await session.get(f"{url}/api/stream") for _ in range(3)]
        assert streams[0].content_type == "text/event-stream"
        for stream in streams:
            first = await read_event(stream.content)
            assert first["picture"]["loop"] == ["warn", "no control loop"]
            assert first["picture"]["problems"] == []
            assert first["points"][0]["ports"]["s1:3"]["control"] == {"class 0": 6}
            assert (await read_event(stream.content))["points"]
        assert (await session.get(f"{url}/api/stream")).status == 503, "three are here"
        began, before = asyncio.get_running_loop().time(), len(taken)
        for _ in range(5):
            await read_event(streams[0].content)
        elapsed_s = asyncio.get_running_loop().time() - began
        assert len(taken) - before <= elapsed_s / 0.1 + 2, "not one sample a viewer"
        assert len(shown) <= len(taken), "not one picture a viewer"
        for stream in streams:
            stream.close()
        end = asyncio.get_running_loop().time() + TIMEOUT_S
        while feed.viewers:
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.02)
        late = await session.get(f"{url}/api/stream")
        assert len((await read_event(late.content))["points"]) >= 5, "who comes late sees what was"
        late.close()


def much(*_: float) -> str:
    """A large message."""
    return "x" * 1_000_000


async def forever() -> AsyncGenerator[int]:
    """Samples without a pause."""
    while True:
        yield 1


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
async def test_a_viewer_who_takes_nothing_is_let_go(switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane_controller.web.server.WRITE_TIMEOUT_S", 0.2)
    async with page_of(switch) as (_, url, feed):
        monkeypatch.setattr(feed, "_news", much)
        monkeypatch.setattr(feed.sampler, "follow", forever)
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), limit=1)
        writer.write(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        end = asyncio.get_running_loop().time() + TIMEOUT_S
        while not feed.viewers:
            await asyncio.sleep(0.01)
        while feed.viewers:
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.02)
        answer = await asyncio.wait_for(reader.read(), TIMEOUT_S)
        assert not answer.endswith(b"0\r\n\r\n"), "its connection was ended, not its answer"
        writer.close()


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
async def test_changes_and_events_come_through(switch: LiveSwitch) -> None:
    async with page_of(switch) as (session, url, _):
        stream = await session.get(f"{url}/api/stream")
        await read_event(stream.content)
        with (switch.folder / "controller-events.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps({"time": "2026-11-21T21:00:00+00:00", "event": "threshold", "switch": "s1", "port": 3, "why": "<b>BW</b> fell"}) + "\n")  # fmt: skip
        await asyncio.to_thread(switch.fairlane, "threshold", "set", "7")
        events: list[Any] = []
        for _ in range(200):
            frame = await read_event(stream.content)
            events += frame["events"]
            thresholds = [p["ports"]["s1:3"]["control"]["class 0"] for p in frame["points"] if p["ports"]]
            if 7 in thresholds and events:
                break
        else:
            raise AssertionError("the threshold did not come through")
        assert events[0]["why"] == "<b>BW</b> fell"
        assert events[0]["place"] == "s1:3"
        stream.close()


class Failing:
    """A source with a fault in it, the first time."""

    def __init__(self) -> None:
        self.asked = 0
        self.closed = 0

    async def snapshot(self) -> Any:
        self.asked += 1
        if self.asked == 1:
            raise KeyError("nobody thought of that")
        return live_rows.picture()

    async def close(self) -> None:
        """Counted."""
        self.closed += 1


async def test_nothing_is_sampled_while_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    source: Any = Failing()
    monkeypatch.setattr("fairlane_controller.live.sampler.LINGER_S", 0.0)
    async with Sampler(source, point_of, period_s=0.001) as sampler:
        for _ in range(20):
            await asyncio.sleep(0.002)
        assert source.asked == 0, "nobody has come yet"
        async for count in sampler.follow():
            if count >= 3:
                break
        end = asyncio.get_running_loop().time() + TIMEOUT_S
        while not source.closed:
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.002)
        asked = source.asked
        for _ in range(20):
            await asyncio.sleep(0.002)
        assert source.asked == asked, "the last one has gone"
        async for count in sampler.follow():
            if count > 3:
                break


async def test_a_fault_of_ours_is_told_and_the_next_sample_is_taken() -> None:
    source: Any = Failing()
    async with Sampler(source, point_of, period_s=0.01) as sampler:
        seen: list[str | None] = []
        async for _ in sampler.follow():
            seen.append(sampler.problem.message if sampler.problem else None)
            if seen[-1] is None:
                break
    assert seen[0] == "a fault of ours: KeyError: 'nobody thought of that'"
    assert sampler.latest is not None


async def test_an_address_that_is_taken_is_said() -> None:
    listen = Listen("127.0.0.1", 0)
    feed = Feed(NO_TOPOLOGY)
    async with served(page_app(feed, listen), listen) as port:
        with pytest.raises(FairlaneError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with served(page_app(feed, listen), Listen("127.0.0.1", port)):
                raise AssertionError("it listens twice")


async def test_tls_and_only_clients_with_a_certificate(tmp_path: Path) -> None:
    with contextlib.suppress(SystemExit):
        await asyncio.to_thread(main, ["setup", "certs", str(tmp_path / "certs")])
    certs = tmp_path / "certs"
    listen = parse_listen(
        "127.0.0.1:0",
        "--listen",
        tls_cert=certs / "server.pem",
        tls_key=certs / "server.key",
        tls_client_ca=certs / "ca.pem",
    )
    known = ssl.create_default_context(cafile=str(certs / "ca.pem"))
    known.load_cert_chain(certs / "observer.pem", certs / "observer.key")
    unknown = ssl.create_default_context(cafile=str(certs / "ca.pem"))
    feed = Feed(NO_TOPOLOGY)
    async with served(page_app(feed, listen), listen) as port, aiohttp.ClientSession() as session:
        url = f"https://127.0.0.1:{port}/"
        assert (await session.get(url, ssl=known)).status == 200
        with pytest.raises(aiohttp.ClientError):
            await session.get(url, ssl=unknown)
        with pytest.raises(aiohttp.ClientError):
            await session.get(url.replace("https", "http"))
