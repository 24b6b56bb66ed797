# SPDX-License-Identifier: Apache-2.0
"""`fairlane hosts`: what it prints, as a table and as JSON, and what it says when it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.cli.main import make_app
from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.run_state import write_topology
from fairlane_hosts import apply, build, commands, loader, registry
from fairlane_hosts.variants import VARIANTS, find_variant
from hosts_bed import HOSTS_ROOT, bed, run
from rich.console import Console
from typer.testing import CliRunner

pytestmark = pytest.mark.kernel

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and BPF programs: needs root")


def call(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(make_app(), ["hosts", *arguments])
    error = result.exception if isinstance(result.exception, FairlaneError) else None
    assert (error.exit_code if error else result.exit_code) == code, result.output
    return result.output + (error.message if error else "")


def write_state(root: Path, name: str, hosts: dict[str, int]) -> None:
    folder = root / name
    folder.mkdir()
    rows = [{"name": host, "pid": pid, "ip": "10.0.0.1"} for host, pid in hosts.items()]
    write_topology(folder, {"name": name, "hosts": rows})


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def host(state: Path) -> Generator[tuple[str, int]]:
    """A host of a running topology: a shell in a namespace, as Mininet has it."""
    build.build_all()
    with bed() as network:
        name = network.senders[0]
        shell = subprocess.Popen(["ip", "netns", "exec", name, "sleep", "120"])
        write_state(state, "0", {"h1": shell.pid})
        try:
            inside, deadline = Path(f"/run/netns/{name}").stat().st_ino, time.monotonic() + 10
            while Path(f"/proc/{shell.pid}/ns/net").stat().st_ino != inside:
                assert time.monotonic() < deadline, "the shell does not enter its namespace"
                time.sleep(0.005)
            yield name, shell.pid
        finally:
            shell.kill()
            shell.wait(timeout=5)


def test_list_names_every_variant_and_what_it_is_not() -> None:
    rows: list[dict[str, Any]] = json.loads(call("list", "--json"))
    assert [row["name"] for row in rows] == list(VARIANTS)
    assert all(row["is_not"] and row["paper"] for row in rows)
    (vegas,) = [row for row in rows if row["name"] == "vegas"]
    assert vegas["parameters"] == {"FL_INITIAL_WINDOW": 2, "FL_ALPHA": 1, "FL_BETA": 3, "FL_GAMMA": 1}
    assert "fl_vegas" in call("list")


def test_list_names_what_each_variant_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "console", Console(width=400))
    lines = call("list")
    for variant in VARIANTS.values():
        assert variant.paper in lines
        assert f"is not {variant.is_not}" in lines
    assert "needs Linux 6.1; host program erto" in lines
    assert "sets tcp_max_reordering=1, tcp_reordering=1" in lines
    assert "needs cubic in the kernel" in lines
    rows: dict[str, dict[str, Any]] = {row["name"]: row for row in json.loads(call("list", "--json"))}
    assert rows["bcr"]["kernel"] == [6, 1]
    assert rows["bcr"]["programs"] == ["erto"]
    assert rows["mrto"]["optional_sysctls"] == {"tcp_rto_min_us": 1}


def test_without_a_running_topology_it_says_how_to_start_one(state: Path) -> None:
    del state
    for arguments in (["show"], ["use", "h1", "vegas"]):
        assert "no topology is running" in call(*arguments, code=3)


def test_with_several_it_asks_which(state: Path) -> None:
    write_state(state, "0", {"h1": 1})
    write_state(state, "k", {"h1": 1})
    assert "several topologies are running (0, k): choose one with --state" in call("show", code=3)
    assert "no running topology 'x'" in call("show", "--state", "x", code=3)
    assert "no running topology 'x'" in call("show", "--state", "x", code=3)


def test_a_broken_state_is_named(state: Path) -> None:
    write_state(state, "0", {})
    write_topology(state / "0", {"hosts": [{"pid": "x"}]})
    assert "hosts[0].pid: 'x': must be a valid integer" in call("show", code=3)


def test_unknown_names_are_answered_with_those_that_there_are(state: Path) -> None:
    write_state(state, "0", {"h1": os.getpid(), "h2": os.getpid()})
    assert "no host is called 'h9'; there are h1, h2" in call("use", "h9", "vegas", code=3)
    assert "no TCP variant is called 'tahoo'" in call("use", "h1", "tahoo", code=3)


@needs_root
def test_use_changes_one_host_and_show_reads_it_back(host: tuple[str, int]) -> None:
    name, pid = host
    ours = apply.read_host()
    assert "h1 uses vegas (fl_vegas) for new connections" in call("use", "h1", "vegas")
    assert run("ip", "netns", "exec", name, "sysctl", "-n", "net.ipv4.tcp_congestion_control").strip() == "fl_vegas"
    assert run("ip", "netns", "exec", name, "sysctl", "-n", "net.ipv4.tcp_sack").strip() == "0"
    shown: dict[str, Any] = json.loads(call("show", "--json"))
    (row,) = shown["hosts"]
    assert (row["name"], row["pid"], row["variant"], row["congestion_control"]) == ("h1", pid, "vegas", "fl_vegas")
    assert "fl_vegas" in shown["loaded"], "held for as long as the host's shell lives"
    assert apply.read_host() == ours
    assert json.loads(call("use", "h1", "newreno", "--json"))["variant"] == "newreno"


@needs_root
def test_use_attaches_the_programs_of_a_variant_until_the_host_ends(host: tuple[str, int]) -> None:
    _, pid = host
    assert json.loads(call("use", "h1", "erto", "--json"))["variant"] == "erto"
    attached = [(one.program, Path(one.cgroup).parts[-2:]) for one in registry.read().hosts]
    # Beside this test others may have hosts.
    assert [program for program, place in attached if place == ("0", "h1")] == ["erto"]
    assert "/0/h1" in Path(f"/proc/{pid}/cgroup").read_text()
    (row,) = json.loads(call("show", "--json"))["hosts"]
    assert (row["variant"], row["programs"]) == ("erto", ["erto"])
    call("use", "h1", "newreno")
    apply.use_on_host(find_variant("bcr"), apply.namespace_of(pid))
    assert "lacks program" not in call("show"), "still attached from the variant before"


@needs_root
def test_show_says_when_a_program_is_missing(host: tuple[str, int]) -> None:
    _, pid = host
    with loader.acquire():
        apply.use_on_host(find_variant("erto"), apply.namespace_of(pid))
        assert "lacks program erto" in " ".join(call("show").split())


@needs_root
@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        ("/sys/kernel/btf", "kernel type information (BTF): no /sys/kernel/btf/vmlinux"),
        ("/proc/sys/kernel", "BPF: no /proc/sys/kernel/unprivileged_bpf_disabled"),
    ],
)
def test_a_kernel_without_btf_or_bpf_gets_one_clear_message(host: tuple[str, int], hidden: str, message: str) -> None:
    """In a mount namespace where the kernel seems to be without: `use` changes nothing and says what is missing, in two lines."""
    name, pid = host
    before = apply.read_host(apply.namespace_of(pid))
    program = "from fairlane_controller.cli.main import main; main()"
    script = f"mount -t tmpfs none {hidden} && exec {sys.executable} -c '{program}' hosts use h1 vegas"
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(HOSTS_ROOT)},
    )
    assert done.returncode == 5
    first, hint = done.stderr.strip().splitlines()
    assert first == f"fairlane: cannot load the TCP variants: {message}"
    assert hint.startswith("  a kernel built with CONFIG_")
    assert "Traceback" not in done.stderr + done.stdout
    assert apply.read_host(apply.namespace_of(pid)) == before
    assert run("ip", "netns", "exec", name, "sysctl", "-n", "net.ipv4.tcp_congestion_control").strip() != "fl_vegas"


def test_check_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_HOSTS_BUILD", str(tmp_path))
    output = call("check", code=1)
    assert f"FAIL compiled programs: none in {tmp_path}: make setup" in " ".join(output.split())
