# SPDX-License-Identifier: Apache-2.0
"""The live page in headless Chromium: charts get data, a change of the threshold shows up, a switch that goes is said, nothing is wrong in the console."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from live_switch import LiveSwitch

try:
    from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
except ImportError:  # pragma: no cover
    sync_playwright = None

NAMES = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_MS = 30_000


def chromium() -> str | None:
    """Where a browser is, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


pytestmark = [
    pytest.mark.skipif(
        chromium() is None or sync_playwright is None,
        reason=f"no browser: apt install chromium (looked for {', '.join(NAMES)}), and pip install playwright",
    ),
    pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True),
]


@contextlib.contextmanager
def web(command: list[str], **environment: str) -> Generator[str]:
    """The address of a running `fairlane web`."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1", **environment}
    )
    try:
        assert process.stdout is not None
        end, line = time.monotonic() + 60.0, b""
        while b"\n" not in line:
            assert time.monotonic() < end, "fairlane web did not start"
            if select.select([process.stdout], [], [], 0.2)[0]:
                line += os.read(process.stdout.fileno(), 4096)
            assert process.poll() is None
        yield line.decode().split()[2]
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0, "it ends in order"


@pytest.fixture
def address(switch: LiveSwitch) -> Iterator[str]:
    """Of a running `fairlane web`."""
    with web(switch.command("web", "--listen", "127.0.0.1:0", "--interval", "0.2s")) as address:
        yield address


@pytest.fixture
def browser(address: str) -> Iterator[Browser]:
    """After the switch is ready: from then on this thread has an event loop, playwright's."""
    del address
    with sync_playwright() as playwright:  # pyright: ignore[reportOptionalCall]
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, address: str, tmp_path: Path) -> Iterator[Page]:
    """The page, open; what its console said must be nothing."""
    told: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page.set_default_timeout(DEADLINE_MS)

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            told.append(message.text)

    def on_error(error: object) -> None:
        told.append(str(error))

    page.on("console", on_console)
    page.on("pageerror", on_error)
    page.goto(address)
    yield page
    page.screenshot(path=tmp_path / "page.png")
    page.close()
    assert told == []


def fairlane(switch: LiveSwitch, *arguments: str) -> None:
    """A command in a process of its own: playwright has an event loop in this one."""
    subprocess.run(switch.command(*arguments), check=True, stdout=subprocess.DEVNULL, timeout=60)


def tile(page: Page, name: str) -> str:
    """The value of a tile."""
    return page.locator(".tile", has=page.locator(".name", has_text=name)).first.locator(".value").inner_text()


def until(page: Page, expression: str) -> None:
    """Wait until it is true on the page; CSP forbids eval, so it is asked for from outside."""
    end = time.monotonic() + DEADLINE_MS / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"waited for {expression}: {page.locator('main').inner_text()}"
        page.wait_for_timeout(50)


def test_the_page_lives(page: Page, switch: LiveSwitch) -> None:
    page.wait_for_selector(".tile")
    points = "[...document.querySelectorAll('canvas')].map((c) => Number(c.dataset.points))"
    until(page, f"{points}.slice(0, 3).every((n) => n > 3)")
    assert tile(page, "Qthresh") == "6 packets"
    assert page.locator("#topology").input_value() == switch.folder.name
    assert page.locator("#port").input_value() == "s1:3"
    assert page.locator("#state").inner_text() == "no control loop"
    fairlane(switch, "threshold", "set", "9")
    until(page, "document.querySelector('#tiles').innerText.includes('9 packets')")
    # The crosshair and its values.
    box = page.locator("canvas").nth(2).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 14, box["y"] + 40)
    until(page, "[...document.querySelectorAll('.tip')].some((t) => !t.hidden && t.innerText.includes('class 0'))")
    # Paused: the tiles stay as they are while the switch changes.
    page.click("#pause")
    fairlane(switch, "threshold", "set", "4")
    before = page.evaluate(points)
    page.wait_for_timeout(600)
    assert page.evaluate(points) == before
    assert tile(page, "Qthresh") == "9 packets"
    page.click("#pause")
    until(page, "document.querySelector('#tiles').innerText.includes('4 packets')")


def test_themes_and_widths(page: Page, tmp_path: Path) -> None:
    page.wait_for_selector(".tile")
    back = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(back)
    page.emulate_media(color_scheme="dark")
    until(page, f"{back} !== '{light}'")
    page.click("#theme")  # light, whatever the system says
    until(page, f"{back} === '{light}'")
    for width in (360, 800, 1600):
        page.set_viewport_size({"width": width, "height": 800})
        until(page, "document.documentElement.scrollWidth <= window.innerWidth")
        page.screenshot(path=tmp_path / f"page-{width}.png")


def test_a_switch_that_goes_is_said_and_found_again(page: Page, switch: LiveSwitch) -> None:
    page.wait_for_selector(".tile")
    assert page.locator("#banner").is_hidden()
    switch.kill()
    page.wait_for_selector("#banner:not([hidden])")
    assert "s1 is gone" in page.locator("#banner").inner_text()
    assert page.locator("#state").inner_text() == "trouble"
    switch.start()
    fairlane(switch, "config", "init", "--scheme", "qthresh")
    page.wait_for_selector("#banner", state="hidden")
    until(page, "document.querySelector('#tiles').innerText.includes('6 packets')")


def test_a_page_without_a_topology_asks_at_a_steady_pace(bare_switch: LiveSwitch, tmp_path: Path) -> None:
    """Left open for a minute of the page's clock: questions must not add up."""
    del bare_switch  # the module's tests have one
    (tmp_path / "none").mkdir()
    code = "from fairlane_controller.cli.main import main; main()"
    command = [sys.executable, "-c", code, "web", "--listen", "127.0.0.1:0"]
    with web(command, FAIRLANE_STATE_DIR=str(tmp_path / "none")) as address, sync_playwright() as playwright:  # pyright: ignore[reportOptionalCall]
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_default_timeout(DEADLINE_MS)
        asked: list[str] = []
        page.on("requestfinished", lambda request: asked.append(request.url))
        page.clock.install()
        page.goto(address)
        page.wait_for_selector("#banner:not([hidden])")
        counts: list[int] = []
        for _ in range(60):
            page.clock.run_for(1000)
            page.wait_for_timeout(10)
            counts.append(sum(url.endswith("/api/topologies") for url in asked))
        browser.close()
    assert counts[-1] > 10, "it goes on asking"
    assert counts[-1] - counts[-11] <= 8, counts
