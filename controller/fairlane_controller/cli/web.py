# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch web`: the live page, in the foreground until Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from fairlane_controller.cli.options import SwitchOption
from fairlane_controller.cli.output import console
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.watch import PERIOD, PeriodOption
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.source import LiveTargets
from fairlane_controller.logs import printed
from fairlane_controller.state.run_state import state_root
from fairlane_controller.state.store import STATE_FILE
from fairlane_controller.web.hub import LONELY, Hub, HubOptions
from fairlane_controller.web.listen import Listen, parse_listen
from fairlane_controller.web.server import PageServer, served

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
    if states or switches:
        fixed = {target.run.name if target.run else LONELY: target for target in _resolve_targets(states, switches)}
        return lambda: dict(fixed)
    return _running


def _resolve_targets(states: list[str] | None, switches: list[str] | None) -> list[Targets]:
    return [resolve(state, switches) for state in states or [None]]


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
    """Serve a live page with queues, thresholds, goodput, drops and decisions over time. Read-only; until Ctrl-C."""
    address = parse_listen(
        listen, "--listen", tls_cert=tls_cert, tls_key=tls_key, tls_client_ca=tls_client_ca, names=tuple(name or ())
    )
    if switch and state and len(state) > 1:
        raise FairlaneError(ErrorCode.BAD_INPUT, "--switch: name one --state, or none")
    hub = Hub(finder(state, switch), HubOptions(period_s=interval))
    with printed():
        asyncio.run(_serve(hub, address))


async def _serve(hub: Hub, address: Listen) -> None:
    ended = make_end_event()
    async with served(PageServer(hub, address).app(), address) as port:
        console.print(
            f"fairlane watch web: {address.url(port)} (read by {address.readers}; Ctrl-C ends it)",
            markup=False,
            soft_wrap=True,
        )
        await ended.wait()
