# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch web` and `watch metrics`: the live page and the Prometheus endpoint, in the foreground until Ctrl-C."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer
from aiohttp import web

from fairlane_controller.cli.conventions import option
from fairlane_controller.cli.model_options import with_options
from fairlane_controller.cli.options import StateOption, SwitchOption
from fairlane_controller.cli.output import say
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.cli.targets import resolve
from fairlane_controller.cli.watch import PERIOD, PeriodOption
from fairlane_controller.logs import printed
from fairlane_controller.metrics.exporter import Exporter
from fairlane_controller.web.hub import Feed
from fairlane_controller.web.server import Listen, page_app, parse_listen, served

ListenOption = Annotated[str, typer.Option("--listen", "-l", help="Address; port 0: any.", metavar="HOST:PORT")]
SECURITY = [
    option("tls_cert", Path, "--tls-cert", help="Certificate (PEM) of this server; needed beyond loopback."),
    option("tls_key", Path, "--tls-key", help="Its key (PEM)."),
    option("tls_client_ca", Path, "--tls-client-ca", help="Only clients with a certificate of this CA (PEM)."),
    option("names", list[str], "--name", help="A host name that clients may call this server by.", metavar="HOST"),
]


@with_options(SECURITY)
def web_command(
    changes: dict[str, Any],
    listen: ListenOption = "127.0.0.1:8080",
    state: StateOption = None,
    switch: SwitchOption = None,
    interval: PeriodOption = PERIOD,
) -> None:
    """Serve a live page with queues, goodput, what the program sets, drops and decisions over time. Read-only; until Ctrl-C."""
    address = parse_listen(listen, "--listen", **changes)
    _serve("web", page_app(Feed(resolve(state, switch), interval), address), address)


@with_options(SECURITY)
def metrics_command(
    changes: dict[str, Any],
    listen: ListenOption = "127.0.0.1:9464",
    state: StateOption = None,
    switch: SwitchOption = None,
    once: Annotated[bool, typer.Option("--once", help="Print one scrape, then end.")] = False,
) -> None:
    """Serve Prometheus metrics of ports, objects of the program, drops, measurements and the loop. Read-only; until Ctrl-C."""
    address = parse_listen(listen, "--listen", **changes)
    exporter = Exporter(resolve(state, switch), address)
    if once:
        with printed():
            print(asyncio.run(exporter.scrape()).decode(), end="")
    else:
        _serve("metrics", exporter.app(), address, "metrics")


def _serve(command: str, app: web.Application, address: Listen, path: str = "") -> None:
    async def work() -> None:
        ended = make_end_event()
        async with served(app, address) as port:
            say(f"fairlane watch {command}: {address.url(port)}{path} (Ctrl-C ends it)")
            await ended.wait()

    with printed():
        asyncio.run(work())
