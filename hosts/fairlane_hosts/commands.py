# SPDX-License-Identifier: Apache-2.0
"""`fairlane hosts`: list the variants, check the machine, show and choose what a running host uses."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any

import typer
from fairlane_controller.cli.complete import complete_names, run_states
from fairlane_controller.cli.conventions import App
from fairlane_controller.cli.options import JsonOption, StateOption
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.run_state import find_folder, read_topology
from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import apply, build, loader
from .check import results as check_results
from .check.command import check_command, complete_variant
from .errors import HostsError
from .host import Host, attach, host_of
from .variants import LITERATURE_SYSCTLS, OPTIONAL_SYSCTLS, VARIANTS, Variant, find_variant

app = App(name="hosts", help="TCP variants of the hosts: list, check, show, use.")
_out, _err = Console(), Console(stderr=True)


@contextlib.contextmanager
def _reported() -> Generator[None]:
    """Report a HostsError, and end with its exit code."""
    try:
        yield
    except HostsError as error:
        _err.print(f"fairlane hosts: {error}", markup=False, highlight=False, soft_wrap=True)
        codes = {code.value: code.exit_code for code in ErrorCode}
        raise typer.Exit(codes.get(error.code, 2)) from error


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=1))


def _folder(state: str | None) -> Path:
    """The run-state folder, found as all commands find it. Raises HostsError `no_topology` when there is none, or several."""
    try:
        return find_folder(state)
    except FairlaneError as error:
        raise HostsError(error.code.value, error.message) from None


def running_hosts(state: str | None = None) -> dict[str, int]:
    """Process id by host name of the running topology. Raises HostsError `no_topology`, or `bad_file` for a state without hosts."""
    folder = _folder(state)
    try:
        topology = read_topology(folder)
        return {str(host["name"]): int(host["pid"]) for host in topology["hosts"]}
    except FairlaneError as error:
        raise HostsError(error.code.value, error.message) from None
    except (ValueError, KeyError, TypeError) as error:
        raise HostsError("bad_file", f"the state of {folder} is not a run's state: {error!r}") from error


def _find_pid(host: str, state: str | None) -> int:
    hosts = running_hosts(state)
    if host not in hosts:
        raise HostsError("namespace", f"no host is called {host!r}; there are {', '.join(hosts)}")
    return hosts[host]


def _row(variant: Variant, ready: list[str]) -> dict[str, Any]:
    """A variant as JSON."""
    apart = ("defines", "sysctls", "optional_sysctls", "simulator")
    return {
        **{name: value for name, value in vars(variant).items() if name not in apart},
        "congestion_control": variant.congestion_control,
        "parameters": dict(variant.defines),
        "sysctls": dict(variant.sysctls),
        "optional_sysctls": dict(variant.optional_sysctls),
        "loaded": variant.congestion_control in ready,
    }


def _needs(variant: Variant) -> str:
    """Kernel, features and host programs, in one line."""
    if variant.builtin:
        return f"{variant.congestion_control} in the kernel"
    programs = f"; host program {', '.join(variant.programs)}" if variant.programs else ""
    return f"Linux {variant.kernel[0]}.{variant.kernel[1]}; {variant.features}{programs}"


def _special_sysctls(variant: Variant) -> str:
    """What it sets other than the literature's senders."""
    usual = {**LITERATURE_SYSCTLS, **OPTIONAL_SYSCTLS}
    own = {**variant.sysctls, **variant.optional_sysctls}
    return ", ".join(f"{name}={value}" for name, value in own.items() if usual.get(name) != value)


@app.command("list")
def list_variants(as_json: JsonOption = False) -> None:
    """The variants: where each is defined, what it needs of the kernel and of its host, and what it is not."""
    ready = loader.available()
    if as_json:
        _print_json([_row(variant, ready) for variant in VARIANTS.values()])
        return
    table = Table("variant", "what it is, needs, and is not", title="TCP variants", show_lines=True)
    for variant in VARIANTS.values():
        loaded = " (loaded)" if not variant.builtin and variant.congestion_control in ready else ""
        special = _special_sysctls(variant)
        lines = [
            Text(variant.paper),
            Text(f"needs {_needs(variant)}", style="dim"),
            *([Text(f"sets {special}", style="dim")] if special else []),
            *([Text(f"one socket: {variant.per_socket}", style="dim")] if variant.per_socket != "yes" else []),
            Text(f"is not {variant.is_not}"),
        ]
        name = Text(variant.name, style="bold") + Text(f"\n{variant.congestion_control}{loaded}", style="not bold")
        table.add_row(name, Text("\n").join(lines))
    _out.print(table)


app.command("check")(check_command)


@app.command("build")
def build_objects(
    force: Annotated[bool, typer.Option("--force", help="Compile also what is up to date.")] = False,
) -> None:
    """Compile the BPF programs."""
    with _reported():
        made = build.build_all(force)
    _out.print(f"built {', '.join(made)}" if made else "everything is up to date", highlight=False)


@app.command("show")
def show(state: StateOption = None, as_json: JsonOption = False) -> None:
    """What each host of the running topology uses, read from its kernel state."""
    with _reported():
        rows = {name: (pid, apply.read_host(apply.namespace_of(pid=pid))) for name, pid in running_hosts(state).items()}
        loaded, running = loader.status(), _folder(state).name
    programs = _programs_by_host(running, loaded)
    if as_json:
        hosts = [
            {
                "name": name,
                "pid": pid,
                "variant": tcp.variant,
                **dataclasses.asdict(tcp),
                "programs": programs.get(name, []),
            }
            for name, (pid, tcp) in rows.items()
        ]
        _print_json({"hosts": hosts, "loaded": dict(loaded.tags)})
        return
    table = Table("host", "variant", "congestion control", "host programs", "differs", title="TCP of the hosts")
    for name, (_, tcp) in rows.items():
        used = programs.get(name, [])
        missing = [p for p in find_variant(tcp.variant).programs if p not in used] if tcp.variant else []
        differs = f"lacks program {', '.join(missing)}" if missing else "" if tcp.variant else "not one of the table"
        table.add_row(name, tcp.variant or "-", tcp.congestion_control, ", ".join(used) or "-", differs)
    _out.print(table)


def _programs_by_host(running: str, loaded: loader.Status) -> dict[str, list[str]]:
    """Names of the programs on each host of a topology, by host name."""
    found = dict[str, list[str]]()
    for item in loaded.attached:
        if Path(item.cgroup).parent.name == running:
            found.setdefault(Path(item.cgroup).name, []).append(item.program)
    return {host: sorted(set(names)) for host, names in found.items()}


def _host(name: str, pid: int, state: str | None) -> Host:
    """The host as its programs take it: its cgroup below the topology's name, and its first interface."""
    namespace = apply.namespace_of(pid=pid)
    lines = apply.run_in_namespace(namespace, Path("/proc/thread-self/net/dev").read_text).splitlines()[2:]
    interfaces = [line.split(":")[0].strip() for line in lines]
    others = [interface for interface in interfaces if interface != "lo"]
    if not others:
        raise HostsError("namespace", f"host {name} has no interface but lo; there are {', '.join(interfaces)}")
    return host_of(f"{_folder(state).name}/{name}", namespace, others[0])


def _choose_variant(name: str, instead: str | None) -> Variant:
    """The named variant, or `instead` where this kernel cannot run it. Raises HostsError."""
    wanted = find_variant(name)
    other = find_variant(instead) if instead is not None else None
    result = check_results.read(wanted)
    if other is not None and result is not None and result.status == "cannot":
        check_results.require(other)
        return other
    check_results.require(wanted)
    return wanted


def _host_names(ctx: Any) -> list[str]:
    return [str(host["name"]) for state in run_states(ctx) for host in state.get("hosts", [])]


@app.command("use")
def use(
    host: Annotated[
        str, typer.Argument(help="Host of the running topology, like h1.", autocompletion=complete_names(_host_names))
    ],
    variant: Annotated[
        str, typer.Argument(help="Variant, see `fairlane hosts list`.", autocompletion=complete_variant)
    ],
    state: StateOption = None,
    instead: Annotated[
        str | None,
        typer.Option(
            "--instead",
            help="Variant to use when this kernel cannot run the one wanted.",
            autocompletion=complete_variant,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a variant the default of a host, for connections made from now on. All or nothing.

    One that failed its check on this kernel (`fairlane hosts check`) is refused, unless --instead names another.
    """
    with _reported():
        chosen = _choose_variant(variant, instead)
        pid = _find_pid(host, state)
        namespace = apply.namespace_of(pid=pid)
        if chosen.builtin:
            tcp = apply.use_on_host(chosen, namespace)
        else:
            with loader.acquire() as lease:
                if chosen.programs:
                    attach(_host(host, pid, state), chosen.programs, lease)
                if chosen.receiver_programs:  # every other host may be its receiver
                    for other, other_pid in running_hosts(state).items():
                        attach(_host(other, other_pid, state), chosen.receiver_programs, lease)
                tcp = apply.use_on_host(chosen, namespace)
                lease.hold_process(pid)  # until the host's shell ends; what is attached, too
        from fairlane_controller.history import (
            record_elsewhere,
        )  # with all that applies an undo: only where it is needed

        record_elsewhere(_folder(state), f"a host ({host})")
    if as_json:
        _print_json({"host": host, "wanted": variant, "variant": tcp.variant, **dataclasses.asdict(tcp)})
    else:
        why = f" instead of {variant}, which failed its check on this kernel" if chosen.name != variant else ""
        text = f"{host} uses {chosen.name} ({tcp.congestion_control}) for new connections{why}"
        _out.print(text, highlight=False, soft_wrap=True)


@app.command("cleanup")
def cleanup(
    force: Annotated[bool, typer.Option("--force", help="Also when something still uses them.")] = False,
) -> None:
    """Unregister what a killed run left in the kernel."""
    with _reported():
        removed = loader.cleanup(force)
    _out.print(f"removed {', '.join(removed)}" if removed else "nothing was left", highlight=False)
