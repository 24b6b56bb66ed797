# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch web` and `watch metrics`: the live page and the Prometheus endpoint, in the foreground until Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from aiohttp import web

from fairlane_controller.cli.options import SwitchOption
from fairlane_controller.cli.output import console
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.cli.targets import resolve
from fairlane_controller.cli.watch import PERIOD, PeriodOption
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.source import LiveTargets
from fairlane_controller.logs import printed
from fairlane_controller.metrics.exporter import Exporter
from fairlane_controller.state.run_state import state_root
from fairlane_controller.state.store import STATE_FILE
from fairlane_controller.web.hub import UNNAMED, Hub, HubOptions
from fairlane_controller.web.server import Listen, PageServer, parse_listen, served

ListenTlsCert = Annotated[
    Path | None, typer.Option("--tls-cert", help="Certificate (PEM) of this server; needed beyond loopback.")
]
ListenTlsKey = Annotated[Path | None, typer.Option("--tls-key", help="Its key (PEM).")]
ListenTlsClientCa = Annotated[
    Path | None, typer.Option("--tls-client-ca", help="Only clients with a certificate of this CA (PEM).")
]
StatesOption = Annotated[
    list[str] | None,
    typer.Option("--state", metavar="NAME", help="Running topology; repeat for several; default all that run."),
]
NameOption = Annotated[
    list[str] | None, typer.Option("--name", help="A host name that clients may call this server by.", metavar="HOST")
]


def finder(states: list[str] | None, switches: list[str] | None) -> Callable[[], dict[str, LiveTargets]]:
    """What gives the topologies by name: those named, or all that run at the moment."""
    if not states and not switches:
        return _running
    targets = [resolve(state, switches) for state in states or [None]]
    fixed: dict[str, LiveTargets] = {target.run.name if target.run else UNNAMED: target for target in targets}
    return lambda: dict(fixed)


def _running() -> dict[str, LiveTargets]:
    found: dict[str, LiveTargets] = {}
    root = state_root()
    for path in sorted(root.glob(f"*/{STATE_FILE}")) if root.is_dir() else ():
        try:
            target = resolve(str(path.parent), None)
        except FairlaneError:
            continue  # it ended meanwhile, or is not whole: the next look decides
        if target.run is not None:
            found[target.run.name] = target
    return found


def web_command(
    listen: Annotated[
        str, typer.Option("--listen", "-l", help="Address of the page; port 0: any.", metavar="HOST:PORT")
    ] = "127.0.0.1:8080",
    state: StatesOption = None,
    switch: SwitchOption = None,
    interval: PeriodOption = PERIOD,
    tls_cert: ListenTlsCert = None,
    tls_key: ListenTlsKey = None,
    tls_client_ca: ListenTlsClientCa = None,
    name: NameOption = None,
) -> None:
    """Serve a live page with queues, goodput, what the program sets, drops and decisions over time. Read-only; until Ctrl-C."""
    address = parse_listen(listen, "--listen", tls_cert, tls_key, tls_client_ca, tuple(name or ()))
    if switch and state and len(state) > 1:
        raise FairlaneError(ErrorCode.BAD_INPUT, "--switch: name one --state, or none")
    hub = Hub(finder(state, switch), HubOptions(period_s=interval))
    _serve("web", PageServer(hub, address).app(), address)


def metrics_command(
    listen: Annotated[
        str, typer.Option("--listen", "-l", help="Address of the endpoint; port 0: any.", metavar="HOST:PORT")
    ] = "127.0.0.1:9464",
    state: StatesOption = None,
    switch: SwitchOption = None,
    once: Annotated[bool, typer.Option("--once", help="Print one scrape, then end.")] = False,
    tls_cert: ListenTlsCert = None,
    tls_key: ListenTlsKey = None,
    tls_client_ca: ListenTlsClientCa = None,
    name: NameOption = None,
) -> None:
    """Serve Prometheus metrics of ports, objects of the program, drops, measurements and the loop. Read-only; until Ctrl-C."""
    address = parse_listen(listen, "--listen", tls_cert, tls_key, tls_client_ca, tuple(name or ()))
    exporter = Exporter(finder(state, switch), address)
    if once:
        with printed():
            print(asyncio.run(exporter.scrape()).decode(), end="")
    else:
        _serve("metrics", exporter.app(), address, "metrics")


def _serve(command: str, app: web.Application, address: Listen, path: str = "") -> None:
    async def work() -> None:
        ended = make_end_event()
        async with served(app, address) as port:
            text = f"{address.url(port)}{path} (read by {address.readers}; Ctrl-C ends it)"
            console.print(f"fairlane watch {command}: {text}", markup=False, soft_wrap=True)
            await ended.wait()

    with printed():
        asyncio.run(work())
