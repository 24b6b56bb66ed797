# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch metrics`: the Prometheus endpoint, in the foreground until Ctrl-C; one scrape with --once."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from prometheus_client import CollectorRegistry, generate_latest

from fairlane_controller.cli.options import SwitchOption
from fairlane_controller.cli.output import console
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.cli.web import ListenTlsCert, ListenTlsClientCa, ListenTlsKey, NameOption, StatesOption, finder
from fairlane_controller.logs import printed
from fairlane_controller.metrics.collect import PictureCollector
from fairlane_controller.metrics.exporter import Exporter, Finder
from fairlane_controller.web.listen import Listen, parse_listen
from fairlane_controller.web.server import served


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
    """Serve Prometheus metrics of queues, thresholds, flows, VCs, drops, measurements and the loop. Read-only; until Ctrl-C."""
    address = parse_listen(
        listen, "--listen", tls_cert=tls_cert, tls_key=tls_key, tls_client_ca=tls_client_ca, names=tuple(name or ())
    )
    find = finder(state, switch)
    with printed():
        asyncio.run(_once(find, address) if once else _serve(find, address))


async def _once(find: Finder, address: Listen) -> None:
    exporter = Exporter(find, address)
    try:
        registry = CollectorRegistry()
        registry.register(PictureCollector(await exporter.pictures()))
        print(generate_latest(registry).decode(), end="")
    finally:
        await exporter.close()


async def _serve(find: Finder, address: Listen) -> None:
    ended = make_end_event()
    async with served(Exporter(find, address).app(), address) as port:
        console.print(
            f"fairlane watch metrics: {address.url(port)}metrics (read by {address.readers}; Ctrl-C ends it)",
            markup=False,
            soft_wrap=True,
        )
        await ended.wait()
