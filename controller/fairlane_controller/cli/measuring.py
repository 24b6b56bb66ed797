# SPDX-License-Identifier: Apache-2.0
"""Measurements for `fairlane ports measure`: the loop's where one runs, else a listening time of our own; and how they are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import Annotated, Any

from fairlane_controller.cli.options import JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.types import Seconds, time_option
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.measure.port import MeasureOptions, PortMeter
from fairlane_controller.measure.prober import listen_probes, send_probes
from fairlane_controller.measure.source import DIGEST_PORT_REPORT, DIGEST_T_RES, listen_reports, listen_t_res
from fairlane_controller.program.contract import Program
from fairlane_controller.program.registry import check_program, find_program, load_program
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.client import LISTENER_ID, Endpoint, SwitchClient
from fairlane_controller.switch.difference import read_entries
from fairlane_controller.units import format_rate, format_size, format_time

DIGESTS = (DIGEST_T_RES, DIGEST_PORT_REPORT)
"""What a program's ports are measured by where no loop runs."""

LISTEN = Seconds(3)


def measure_command(
    state: StateOption = None,
    switch: SwitchOption = None,
    duration: Annotated[
        Seconds, time_option("--for", help="Without a loop: listen this long.", at_least=0.1, at_most=600)
    ] = LISTEN,
    as_json: JsonOption = False,
) -> None:
    """Show BW, T_res, τ, T_ACK, L_D and N_C of each managed port: from the running loop, or by listening for a while.

    Examples: `fairlane ports measure`, `fairlane ports measure --for 5s --json`
    """
    rows = asyncio.run(measure(resolve(state, switch), duration))
    if as_json:
        print_json(rows)
        return
    print_measured(rows)


async def measure(targets: Targets, listen_s: float) -> list[dict[str, Any]]:
    """One row a managed port. Digests go to the primary only: without a loop this is the primary meanwhile, where nobody else is."""
    folder = targets.loop_folder
    if folder is not None:
        names = {e.name for e in targets.endpoints}
        return [row for row in await ask(folder, {"op": "measure"}) if row["switch"] in names]
    bmv2 = targets.run is not None and targets.run.target == "bmv2"
    options = MeasureOptions(sample_includes_t_d=not bmv2)
    states = {state.name: state for state in targets.run.switches} if targets.run else {}
    program = load_program(targets.run.program) if targets.run is not None else None
    lists = await asyncio.gather(
        *(_listen(e, options, listen_s, program, states.get(e.name)) for e in targets.endpoints)
    )
    return [row for rows in lists for row in rows]


async def _listen(
    endpoint: Endpoint, options: MeasureOptions, listen_s: float, program: Program | None, state: SwitchState | None
) -> list[dict[str, Any]]:
    rates = {port.port: float(port.rate_bps) for port in (state.ports if state else ()) if port.rate_bps}
    async with SwitchClient(endpoint, write=True, election_id=LISTENER_ID, require_primary=False) as client:
        ports = await _measured_ports(client, program)
        if not client.is_primary:
            raise FairlaneError(
                ErrorCode.NOT_PRIMARY,
                f"{endpoint}: another controller is the primary, and what is measured goes to it alone: nothing was asked of it",
            )
        meters = {port: PortMeter(options, line_bps=rates.get(port)) for port in ports}
        for name in DIGESTS:
            await client.enable_digest(name, max_list=64, max_timeout_s=0.02, ack_timeout_s=1.0)
        listeners = [
            asyncio.create_task(listen_reports(client, meters.get)),
            asyncio.create_task(listen_t_res(client, meters.get)),
            asyncio.create_task(listen_probes(client, meters.get)),
            asyncio.create_task(send_probes(client, lambda: meters)),
        ]
        try:
            done, _ = await asyncio.wait(listeners, timeout=listen_s, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in listeners:
                task.cancel()
            await asyncio.gather(*listeners, return_exceptions=True)
        now = asyncio.get_running_loop().time()
        return [
            {"switch": endpoint.name, "port": port, **meter.measurement(now).to_json()}
            for port, meter in sorted(meters.items())
        ]


async def _measured_ports(client: SwitchClient, program: Program | None) -> Collection[int]:
    """The managed ports of a switch; NO_LOOP or WRONG_PROGRAM where its program does not send what is measured by."""
    tables = client.table_names()
    if program is not None:
        check_program(program, tables)
    program = program or find_program(tables)
    if program is not None and {digest.alias for digest in client.switch.p4info.digests} >= {*DIGESTS}:
        return program.ports_of(client.endpoint.name, await read_entries(client, program.tables)).keys()
    name = program.name if program is not None else client.program
    if program is not None and program.control:
        raise FairlaneError(
            ErrorCode.NO_LOOP, f"ports of {name} are measured by the running loop: start it with `fairlane run`"
        )
    raise FairlaneError(
        ErrorCode.WRONG_PROGRAM, f"{client.endpoint} runs the program {name}, which sends no {' and '.join(DIGESTS)}"
    )


T_RES_SOURCE_TEXTS = {"acks": "ACKs", "probes": "probes and ACKs", "probes_alone": "probes"}
"""What `t_res_source` means to people."""


_UNKNOWN_TEXT = (
    "-: not known yet. BW, L_D and N_C need packets that wait at the port, T_res ACKs that come back through the switch, "
    "τ a switch of ours at the other end"
)


def print_measured(rows: list[dict[str, Any]]) -> None:
    """One line a value: with how much it may be wrong, how many observations it is of, and how old the last one is."""
    columns = ("switch", "port", "what", "value", "± 95 %", "observations", "age", "by")
    lines = [line for row in rows for line in _lines(row)]
    print_table("measured", columns, lines, empty="no port is managed")
    if any(line[3] == "-" for line in lines):
        console.print(_UNKNOWN_TEXT, markup=False, soft_wrap=True)


def _lines(row: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    """A port's; what is not known has a dash."""
    kinds: list[tuple[str, str, Callable[[float | None], str], str]] = [
        ("BW", "bw_bps", format_rate, "reports"),
        ("T_res", "t_res_s", _time, T_RES_SOURCE_TEXTS.get(row.get("t_res_source", ""), "-")),
        ("τ", "tau_s", _time, "probes"),
        ("T_ACK", "t_ack_s", _time, "ACKs and probes"),
        ("L_D", "l_d_bytes", format_size, "reports"),
        ("N_C", "n_c", _number, "reports"),
    ]
    for what, key, form, by in kinds:
        if key in row:
            yield row["switch"], row["port"], what, *_value(row[key], form), by
    if row.get("waiting_packets") is not None:
        yield row["switch"], row["port"], "waiting", f"{row['waiting_packets']} packets", "-", "-", "-", "reports"
    for vc, service in row.get("service_bps", {}).items():
        yield row["switch"], row["port"], f"service of {vc}", *_value(service, format_rate), "counters"


def _value(estimate: dict[str, Any] | None, form: Callable[[float | None], str]) -> tuple[str, str, str, str]:
    if estimate is None:
        return "-", "-", "-", "-"
    return form(estimate["value"]), form(estimate["uncertainty"]), str(estimate["count"]), f"{estimate['age_s']:.1f} s"


def _time(seconds: float | None) -> str:
    return format_time(None if seconds is None else round(seconds, 6))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
