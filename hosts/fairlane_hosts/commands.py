# SPDX-License-Identifier: Apache-2.0
"""`fairlane hosts`: list the variants, check the machine, show and choose what a running host uses."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from fairlane_controller.cli.complete import complete_names, run_states
from fairlane_controller.cli.conventions import App
from fairlane_controller.cli.options import JsonOption, StateOption
from fairlane_controller.cli.output import console, error_console, print_json, print_table, say
from fairlane_controller.state.run_state import find_folder, read_run_state
from rich.table import Table
from rich.text import Text

from . import apply, build, loader, registry
from .check.probes import check_variants
from .check.results import Result
from .errors import HostsError
from .host import use_on_hosts
from .variants import LITERATURE_SYSCTLS, OPTIONAL_SYSCTLS, VARIANTS, Variant, find_variant

app = App(name="hosts", help="TCP variants of the hosts: list, check, show, use.")
_complete_variant = complete_names(lambda _: {variant.name: variant.paper for variant in VARIANTS.values()})


def running_hosts(state: str | None = None) -> dict[str, int]:
    """Process id by host name of the running topology. Raises NO_TOPOLOGY, BAD_FILE."""
    return {host.name: host.pid for host in read_run_state(find_folder(state)).hosts}


def _needs(variant: Variant) -> str:
    """Kernel and host programs, in one line."""
    if variant.builtin:
        return f"{variant.congestion_control} in the kernel"
    programs = f"; host program {', '.join(variant.programs)}" if variant.programs else ""
    return f"Linux {variant.kernel[0]}.{variant.kernel[1]}{programs}"


@app.command("list")
def list_variants(as_json: JsonOption = False) -> None:
    """The variants: where each is defined, what it needs of the kernel and of its host, and what it is not."""
    ready = loader.available()
    if as_json:
        rows = [
            {
                **{name: value for name, value in asdict(variant).items() if name not in ("defines", "simulator")},
                "congestion_control": variant.congestion_control,
                "parameters": variant.defines,
                "loaded": variant.congestion_control in ready,
            }
            for variant in VARIANTS.values()
        ]
        print_json(rows)
        return
    table = Table("variant", "what it is, needs, and is not", title="TCP variants", show_lines=True)
    usual = {**LITERATURE_SYSCTLS, **OPTIONAL_SYSCTLS}
    for variant in VARIANTS.values():
        loaded = " (loaded)" if not variant.builtin and variant.congestion_control in ready else ""
        own = {**variant.sysctls, **variant.optional_sysctls}
        special = ", ".join(f"{name}={value}" for name, value in own.items() if usual.get(name) != value)
        lines = [
            Text(variant.paper),
            Text(f"needs {_needs(variant)}", style="dim"),
            *([Text(f"sets {special}", style="dim")] if special else []),
            Text(f"is not {variant.is_not}"),
        ]
        name = Text(variant.name, style="bold") + Text(f"\n{variant.congestion_control}{loaded}", style="not bold")
        table.add_row(name, Text("\n").join(lines))
    console.print(table)


def _check(wanted: list[Variant]) -> tuple[list[loader.Check], list[Result]]:
    machine = loader.check()
    if not all(item.ok for item in machine):
        return machine, []
    with error_console.status("") as status:
        try:
            results = check_variants(wanted, lambda variant: status.update(f"trying {variant.name}"))
        except HostsError as error:
            return [*machine, loader.Check("loading", False, error.what, error.hint)], []
    return [*machine, loader.Check("loading", True, f"{len(loader.programs())} congestion controls")], results


@app.command("check")
def check(
    variants: Annotated[
        list[str] | None, typer.Argument(help="Variants to try; all when left out.", autocompletion=_complete_variant)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Whether this machine can run the variants: tries each on the running kernel in throw-away namespaces.

    Exit code 1 when something is missing or a variant does not do what defines it.
    """
    wanted = [find_variant(name) for name in variants] if variants else list(VARIANTS.values())
    machine, results = _check(wanted)
    failed = [result.variant for result in results if result.status == "cannot"]
    if as_json:
        print_json({"machine": [asdict(item) for item in machine], "variants": [asdict(result) for result in results]})
    else:
        for item in machine:
            say(f"{'ok  ' if item.ok else 'FAIL'} {item.what}: {item.found}{'' if item.ok else f': {item.hint}'}")
        if results:
            cells = [(result.variant, result.status, result.found) for result in results]
            print_table("TCP variants on the running kernel", ("variant", "on this kernel", "seen"), cells, wrap=True)
        if failed:
            say(f"`fairlane hosts use` refuses {', '.join(failed)}.")
    if failed or not all(item.ok for item in machine):
        raise typer.Exit(1)


@app.command("build")
def build_objects(
    force: Annotated[bool, typer.Option("--force", help="Compile also what is up to date.")] = False,
) -> None:
    """Compile the BPF programs."""
    made = build.build_all(force)
    say(f"built {', '.join(made)}" if made else "everything is up to date")


@app.command("show")
def show(state: StateOption = None, as_json: JsonOption = False) -> None:
    """What each host of the running topology uses, read from its kernel state."""
    rows = {name: (pid, apply.read_host(apply.namespace_of(pid))) for name, pid in running_hosts(state).items()}
    attached, running = registry.read().hosts, find_folder(state).name
    hosts = list[dict[str, Any]]()
    for name, (pid, tcp) in rows.items():
        programs = sorted({one.program for one in attached if Path(one.cgroup).parts[-2:] == (running, name)})
        hosts.append({"name": name, "pid": pid, "variant": tcp.variant, **asdict(tcp), "programs": programs})
    if as_json:
        print_json({"hosts": hosts, "loaded": registry.names()})
        return
    cells = list[tuple[str | None, ...]]()
    for host in hosts:
        variant, programs = host["variant"], host["programs"]
        missing = [program for program in find_variant(variant).programs if program not in programs] if variant else []
        differs = f"lacks program {', '.join(missing)}" if missing else "" if variant else "not one of the table"
        cells.append((host["name"], variant, host["congestion_control"], ", ".join(programs) or None, differs))
    columns = ("host", "variant", "congestion control", "host programs", "differs")
    print_table("TCP of the hosts", columns, cells, wrap=True)


def _host_names(ctx: Any) -> list[str]:
    return [str(host["name"]) for state in run_states(ctx) for host in state.get("hosts", [])]


@app.command("use")
def use(
    host: Annotated[
        str, typer.Argument(help="Host of the running topology, like h1.", autocompletion=complete_names(_host_names))
    ],
    variant: Annotated[
        str, typer.Argument(help="Variant, see `fairlane hosts list`.", autocompletion=_complete_variant)
    ],
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a variant the default of a host, for connections made from now on. All or nothing.

    One that failed its check on this kernel (`fairlane hosts check`) is refused.
    """
    chosen, hosts = find_variant(variant), running_hosts(state)
    if host not in hosts:
        raise HostsError("unknown-host", f"no host is called {host!r}; there are {', '.join(hosts) or 'none'}")
    found, lease = use_on_hosts({host: chosen}, hosts, find_folder(state).name)
    if lease is not None:
        with lease:
            lease.hold_process(hosts[host])  # until the host's shell ends; what is attached, too
    tcp = found[host]
    if as_json:
        print_json({"host": host, "wanted": variant, "variant": tcp.variant, **asdict(tcp)})
    else:
        say(f"{host} uses {chosen.name} ({tcp.congestion_control}) for new connections")


@app.command("cleanup")
def cleanup(
    force: Annotated[bool, typer.Option("--force", help="Also when something still uses them.")] = False,
) -> None:
    """Unregister what a killed run left in the kernel."""
    removed = loader.cleanup(force)
    say(f"removed {', '.join(removed)}" if removed else "nothing was left")
