# SPDX-License-Identifier: Apache-2.0
"""The live page in headless Chromium, for tests: `fairlane watch web`, a browser, what the page shows."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from live_switch import LiveSwitch

try:
    from playwright.sync_api import ConsoleMessage, Page, sync_playwright
except ImportError:  # pragma: no cover
    sync_playwright = None

NAMES = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_MS = 30_000


def chromium() -> str | None:
    """Where a browser is, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


needs_browser = pytest.mark.skipif(
    chromium() is None or sync_playwright is None,
    reason=f"no browser: apt install chromium (looked for {', '.join(NAMES)}), and pip install playwright",
)


@contextlib.contextmanager
def web(command: list[str], **environment: str) -> Generator[str]:
    """The address of a running `fairlane watch web`."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1", **environment}
    )
    try:
        assert process.stdout is not None
        end, line = time.monotonic() + 60.0, b""
        while b"\n" not in line:
            assert time.monotonic() < end, "fairlane watch web did not start"
            if select.select([process.stdout], [], [], 0.2)[0]:
                line += os.read(process.stdout.fileno(), 4096)
            assert process.poll() is None
        yield line.decode().split()[3]
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0, "it ends in order"


@contextlib.contextmanager
def opened(switch: LiveSwitch, folder: Path) -> Generator[Page]:
    """The page of a switch. Its console must be empty; its last picture is `page.png` in the folder.

    This thread has an event loop meanwhile, playwright's: commands run in processes of their own (`call`).
    """
    messages: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            messages.append(message.text)

    def on_error(error: object) -> None:
        messages.append(str(error))

    serve = switch.command("watch", "web", "--listen", "127.0.0.1:0", "--interval", "0.2s")
    with web(serve) as address, sync_playwright() as playwright:  # pyright: ignore[reportOptionalCall]
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        page.set_default_timeout(DEADLINE_MS)
        page.on("console", on_console)
        page.on("pageerror", on_error)
        page.goto(address)
        yield page
        page.screenshot(path=folder / "page.png")
        browser.close()
    assert messages == []


def call(switch: LiveSwitch, *arguments: str) -> None:
    """A command in a process of its own."""
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
