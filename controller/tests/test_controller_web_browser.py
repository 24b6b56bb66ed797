# SPDX-License-Identifier: Apache-2.0
"""The live page in headless Chromium: charts get data, a change of the threshold shows up, a switch that goes is reported, nothing is wrong in the console."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fairlane_controller.programs.qthresh.flows import Flow, FlowKey
from fairlane_controller.state.run_state import read_topology, write_topology
from fairlane_controller.switch.client import Endpoint, SwitchClient
from live_page import call, needs_browser, tile, until
from live_switch import LiveSwitch

if TYPE_CHECKING:
    from playwright.sync_api import Page

FLOW = FlowKey(4, 0x0A000101, 0x0A000302, 6, 40000, 5001)

pytestmark = [needs_browser, pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)]


def test_the_page_lives(page: Page, switch: LiveSwitch) -> None:
    page.wait_for_selector(".tile")
    points = "[...document.querySelectorAll('.card > svg')].map((c) => Number(c.dataset.points))"
    until(page, f"{points}.slice(0, 3).every((n) => n > 3)")
    assert tile(page, "Qthresh") == "6 packets"
    assert page.locator("#topology").inner_text() == switch.folder.name
    assert page.locator("#port").input_value() == "s1:3"
    assert page.locator("#state").inner_text() == "no control loop"
    call(switch, "threshold", "set", "9")
    until(page, "document.querySelector('#tiles').innerText.includes('9 packets')")
    # The crosshair and its values.
    legend = "document.querySelectorAll('.legend')[2].innerText"
    until(page, f"{legend}.includes('class 0 9')")
    box = page.locator(".card > svg").nth(2).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 50, box["y"] + 40)
    until(page, f"{legend}.includes('class 0 -')")
    page.locator(".legend").nth(2).locator("button").click()
    assert page.locator(".card > svg").nth(2).locator(".line").count() == 0, "the line is hidden"
    # Paused: the tiles stay as they are while the switch changes.
    page.click("#pause")
    call(switch, "threshold", "set", "4")
    before = page.evaluate(points)
    page.wait_for_timeout(600)
    assert page.evaluate(points) == before
    assert tile(page, "Qthresh") == "9 packets"
    page.click("#pause")
    until(page, "document.querySelector('#tiles').innerText.includes('4 packets')")


def test_names_stand_for_addresses(page: Page, switch: LiveSwitch) -> None:
    """Of the topology's file and of its hosts, as soon as the run state has them."""

    async def learn() -> None:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}"), write=True) as client:
            await client.write([+FLOW.entry(7, Flow((3, 0)))])

    with ThreadPoolExecutor() as pool:  # playwright's loop runs in this thread
        pool.submit(asyncio.run, learn()).result(timeout=30)
    page.wait_for_selector(".tile")
    until(page, "document.querySelector('#flows').innerText.includes('10.0.1.1:40000')")
    hosts = [{"name": "h1", "pid": 1, "ip": "10.0.1.1"}, {"name": "h3", "pid": 1, "ip": "10.0.3.2"}]
    state = read_topology(switch.folder)
    write_topology(switch.folder, {**state, "topology": "mininet/topologies/dumbbell.json", "hosts": hosts})
    until(page, "document.querySelector('#flows').innerText.includes('tcp h1:40000 → h3:5001')")
    until(page, f"document.querySelector('#topology').innerText === 'dumbbell ({switch.folder.name})'")
    page.screenshot(path=switch.folder / "page-names.png", full_page=True)


def test_ticks_of_a_count_are_whole_numbers(page: Page, switch: LiveSwitch) -> None:
    page.wait_for_selector(".tile")
    call(switch, "threshold", "set", "9")
    until(page, "document.querySelector('#tiles').innerText.includes('9 packets')")
    ticks = "[...document.querySelectorAll('.card > svg')[%d].querySelectorAll('.value')].map((t) => t.textContent)"
    until(page, f"{ticks % 2}.length > 3")
    for chart, least in ((0, 4), (2, 9)):
        found = [float(tick) for tick in page.evaluate(ticks % chart)]
        step = found[1]
        assert step == int(step) >= 1
        assert found == [place * step for place in range(len(found))], f"not rounded: {found}"
        assert found[-1] + step > least


def test_themes_and_widths(page: Page, tmp_path: Path) -> None:
    page.wait_for_selector(".tile")
    back = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(back)
    page.emulate_media(color_scheme="dark")
    until(page, f"{back} !== '{light}'")
    page.emulate_media(color_scheme="light")
    until(page, f"{back} === '{light}'")
    for width in (360, 800, 1280, 1600):
        page.set_viewport_size({"width": width, "height": 800})
        until(page, "document.documentElement.scrollWidth <= window.innerWidth")
        cut = "[...document.querySelectorAll('.tile > div')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText)"
        assert page.evaluate(cut) == []
        page.screenshot(path=tmp_path / f"page-{width}.png")


def test_a_switch_that_goes_is_said_and_found_again(page: Page, switch: LiveSwitch) -> None:
    page.wait_for_selector(".tile")
    assert page.locator("#banner").is_hidden()
    switch.kill()
    page.wait_for_selector("#banner:not([hidden])")
    assert "s1 is gone" in page.locator("#banner").inner_text()
    assert page.locator("#state").inner_text() == "trouble"
    switch.start()
    call(switch, "config", "init", "--scheme", "qthresh")
    page.wait_for_selector("#banner", state="hidden")
    until(page, "document.querySelector('#tiles').innerText.includes('6 packets')")
