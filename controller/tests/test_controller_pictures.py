# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs: `fairlane watch`, the page and a trace, of the demo's Reno and Vegas in virtual time: each run has the same numbers.

`FAIRLANE_UPDATE_PICTURES=1 pytest controller/tests/test_controller_pictures.py` draws them anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import fields
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import matplotlib.pyplot as plt
import numpy as np
import pytest
from fairlane_controller.cli import trace as trace_cli
from fairlane_controller.gnmi.ports import PortInfo
from fairlane_controller.live.model import LoopRow, Snapshot, SwitchRow
from fairlane_controller.live.terminal import WatchView, queues_of, render
from fairlane_controller.live.view import read_sample
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.events import EVENTS_FILE
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.reading import BatchReading, RateBook
from fairlane_controller.switch.tracing import Trace, trace
from fairlane_controller.web.hub import Feed
from fairlane_controller.web.server import Listen, page_app, served
from live_page import chromium, needs_browser
from live_switch import REPOSITORY, LiveSwitch
from rich.console import Console
from rich.screen import Screen

if TYPE_CHECKING:
    from fairlane_lab.sim.world import SimWorld

PICTURES = REPOSITORY / "docs" / "pictures"
UPDATE = bool(os.environ.get("FAIRLANE_UPDATE_PICTURES"))
BEGAN_S = datetime(2026, 1, 1, 12, tzinfo=timezone.utc).timestamp()
PERIOD_S, SAMPLES = 0.5, 90
POINT = "2M-2ms/auto"
PACKET = "udp:10.0.1.1:53>10.9.9.9:53"
Recorded = tuple[list[Snapshot], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    """Snapshots of the demo, twice a second of virtual time, and the control loop's events."""
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    from fairlane_lab.definition.expansion import Selection, expand
    from fairlane_lab.definition.loading import load
    from fairlane_lab.sim.config import resolve
    from fairlane_lab.sim.world import SimWorld

    found = expand(load("demo"), Selection(runtime="sim", seed=1, repeats=1))
    (scenario,) = (each for each in found if each.point == POINT)
    world = SimWorld(resolve(scenario, 20_000_000))
    try:
        return world.loop.run_until_complete(record(world))
    finally:
        world.close()


async def record(world: SimWorld) -> Recorded:
    """Let the run go, and read the managed switch as `fairlane watch` does."""
    await world.set_up()
    rates, found = RateBook(), list[Snapshot]()
    world.start()
    program = load_program("qthresh")
    async with world.client(world.endpoint("s1")) as client:
        reading = BatchReading(cast("Any", client), rates.per_s)
        counters = {counter.alias for counter in client.switch.p4info.counters}
        for sample in range(1, SAMPLES + 1):
            at_s = sample * PERIOD_S
            await asyncio.sleep(at_s - world.loop.time())
            rates.begin(at_s)
            status = [agent.status() for agent in world.agents]
            loop = tuple(LoopRow(s["switch"], True, None, s) for s in status)
            reading.loop = status[0]
            measured = {row["port"]: row for agent in world.agents for row in agent.control.measurements()}
            lines = [line_of(row) for row in json.loads(world.simulation.ports()) if row["switch"] == "s1"]
            rows = await read_sample(program, reading, world.run_state, measured, counters, lines)
            switch = SwitchRow("s1", "127.0.0.1:50051", 1, reachable=True, program="qthresh", read_ms=1.0)
            ports, objects, drops = (tuple(cast("list[Any]", each)) for each in rows)
            hosts = {"10.0.1.1": "h1", "10.0.2.2": "h2", "10.0.3.3": "h3"}
            found.append(Snapshot(BEGAN_S + at_s, "0", "embedded", (switch,), ports, objects, drops, loop, interval_s=PERIOD_S, title="dumbbell", hosts=hosts, programs={"qthresh": program}))  # fmt: skip
    await world.end()
    events = world.log.events
    times = (datetime.fromtimestamp(BEGAN_S + event["t_s"], timezone.utc).isoformat() for event in events)
    return found, [{"time": at, **event} for at, event in zip(times, events, strict=True)]


def line_of(row: dict[str, Any]) -> PortInfo:
    """A port of the simulated switch as gNMI has it."""
    known = {field.name for field in fields(PortInfo)}
    return PortInfo(**{name: value for name, value in row.items() if name in known})


def compare(name: str, svg: str) -> None:
    """The picture is the one in docs, which says what it shows."""
    path = PICTURES / name
    if UPDATE:
        path.write_text(svg, encoding="utf-8")
    assert svg == path.read_text(encoding="utf-8"), f"{path} is not what is shown today: see the head of this file"


def drawn(console: Console, title: str) -> str:
    """What a terminal shows, as a picture that loads no font from elsewhere."""
    svg = console.export_svg(title=title, unique_id="terminal")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def terminal(width: int, height: int | None = None) -> Console:
    """One that records."""
    return Console(width=width, height=height, file=io.StringIO(), record=True, highlight=False, force_terminal=True)


def test_the_picture_of_watch(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    snapshots, events = recorded
    console = terminal(118, 20)
    view = WatchView(snapshots[-1], [queues_of(each) for each in snapshots[-20:]], events)
    console.print(Screen(render(view, 118, 20)))
    compare("watch.svg", drawn(console, "fairlane watch"))


@pytest.mark.parametrize("wired_switch", ["embedded"], indirect=True)
def test_the_picture_of_a_trace(wired_switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a packet without a route; the switch's clock, which the program reads, is shown as 0."""
    console = terminal(150)

    async def at_zero(endpoint: Endpoint, port: int, frame: bytes) -> AsyncIterator[Trace]:
        async for found in trace(endpoint, port, frame):
            text = json.dumps({**found, "time_ns": 0})
            yield json.loads(text.replace(hex(int(found["time_ns"]) // 1000), "0x0"))

    monkeypatch.setattr(trace_cli, "console", console)
    monkeypatch.setattr(trace_cli, "trace", at_zero)
    wired_switch.fairlane("trace", "s1:1", "--packet", PACKET)
    compare("trace.svg", drawn(console, f"fairlane trace s1:1 --packet '{PACKET}'"))


class Replayed:
    """The source of a page that has all snapshots at once, and no more."""

    def __init__(self, snapshots: Sequence[Snapshot], _targets: object) -> None:
        self._rest = iter(snapshots)

    async def snapshot(self) -> Snapshot:
        """The next one."""
        if (found := next(self._rest, None)) is None:
            await asyncio.Event().wait()
        return cast("Snapshot", found)

    async def close(self) -> None:
        """Nothing is open."""


@contextlib.asynccontextmanager
async def replayed(recorded: Recorded, folder: Path) -> AsyncGenerator[str]:
    """The address of a page that shows what was recorded."""
    snapshots, events = recorded
    (folder / EVENTS_FILE).write_text("".join(f"{json.dumps(event, default=str)}\n" for event in events))
    targets = SimpleNamespace(run=SimpleNamespace(folder=folder), endpoints=())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlane_controller.web.hub.LiveSource", partial(Replayed, snapshots))
        feed = Feed(cast("Any", targets), PERIOD_S)
    for _ in snapshots:
        await feed.sampler.sample()
    listen = Listen("127.0.0.1", 0)
    async with served(page_app(feed, listen), listen) as port:
        yield listen.url(port)


@needs_browser
def test_the_picture_of_the_page(recorded: Recorded, tmp_path: Path) -> None:
    """Its words are in docs/pictures/page.txt; the pictures may differ a little: another browser has other fonts."""
    words, picture = asyncio.run(photographed(recorded, tmp_path))
    if UPDATE:
        (PICTURES / "page.png").write_bytes(picture)
        (PICTURES / "page.txt").write_text(f"{words}\n", encoding="utf-8")
    assert f"{words}\n" == (PICTURES / "page.txt").read_text(encoding="utf-8"), "see the head of this file"
    now, then = plt.imread(io.BytesIO(picture)), plt.imread(PICTURES / "page.png")
    assert now.shape == then.shape
    assert np.abs(now[..., :3] - then[..., :3]).mean() < 0.05


async def photographed(recorded: Recorded, folder: Path) -> tuple[str, bytes]:
    """The words of the page and its picture."""
    from playwright.async_api import async_playwright

    async with replayed(recorded, folder) as address, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = await browser.new_page(viewport={"width": 1180, "height": 900}, color_scheme="light", timezone_id="UTC")
        await page.goto(address)
        await page.locator("#flows tbody tr").nth(1).wait_for()
        await page.wait_for_timeout(300)
        words, picture = await page.locator("body").inner_text(), await page.screenshot()
        await browser.close()
    return words, picture
