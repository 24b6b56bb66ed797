# SPDX-License-Identifier: Apache-2.0
"""`fairlane hosts check`: every variant passes on this kernel, each trial can fail, and `use` refuses what failed."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.cli.main import make_app
from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.run_state import write_topology
from fairlane_hosts import apply, build, loader, registry
from fairlane_hosts.check import probes, results
from fairlane_hosts.check.bed import CheckBed
from fairlane_hosts.check.results import Result
from fairlane_hosts.errors import HostsError
from fairlane_hosts.variants import VARIANTS, Variant, find_variant
from hosts_bed import HOSTS_ROOT, wait_until
from typer.testing import CliRunner

pytestmark = pytest.mark.kernel

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and BPF programs: needs root")


def call(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(make_app(), ["hosts", *arguments])
    error = result.exception if isinstance(result.exception, FairlaneError) else None
    assert (error.exit_code if error else result.exit_code) == code, result.output
    return result.output + (error.message if error else "")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results are kept in a file of the test's own."""
    path = tmp_path / "check.json"
    monkeypatch.setattr(results, "path", lambda: path)
    return path


# --- what is kept, and what `use` makes of it -------------------------------------------------------------------------


def another_build(variant: Variant) -> str:
    return f"another build of {variant.name}"


def test_a_result_holds_for_one_kernel_and_one_build(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    erto = find_variant("erto")
    assert results.read(erto) is None
    results.require(erto)  # unchecked: allowed
    failed = Result("erto", "cannot", "the timer sent the head again")
    results.write([failed])
    results.write([Result("vegas", "ok", "seen")])
    assert results.read(erto) == failed
    with monkeypatch.context() as patched:
        patched.setattr(results, "kernel", lambda: "another kernel")
        assert results.read(erto) is None
    with monkeypatch.context() as patched:
        patched.setattr(results, "tag", another_build)
        assert results.read(erto) is None
    kept.write_text("{broken")
    assert results.read(erto) is None


def test_a_variant_that_failed_is_refused_with_the_remedy(kept: Path) -> None:
    del kept
    results.write([Result("erto", "cannot", "the timer sent the head again")])
    with pytest.raises(HostsError) as caught:
        apply.use_on_host(find_variant("erto"))
    assert caught.value.kind == "check"
    assert "variant erto failed its check on this kernel: the timer sent the head again" in str(caught.value)
    assert "`fairlane hosts check erto` tries again" in str(caught.value)


@needs_root
def test_use_refuses_what_failed(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del kept
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path / "state"))
    shell = subprocess.Popen(["unshare", "--net", "sleep", "60"])
    try:
        ours = Path("/proc/self/ns/net").stat().st_ino
        wait_until(lambda: Path(f"/proc/{shell.pid}/ns/net").stat().st_ino != ours, 10, "a namespace of its own")
        folder = tmp_path / "state" / "0"
        folder.mkdir(parents=True)
        write_topology(folder, {"name": "0", "hosts": [{"name": "h1", "pid": shell.pid}]})
        build.build_all()
        results.write([Result("westwood", "cannot", "it does not load")])
        refused = call("use", "h1", "westwood", code=5)
        assert "variant westwood failed its check on this kernel: it does not load" in refused
        assert "h1 uses vegas" in call("use", "h1", "vegas")
    finally:
        shell.kill()
        shell.wait(timeout=5)


# --- the trials -------------------------------------------------------------------------------------------------------


@needs_root
def test_every_variant_passes_on_this_kernel_and_nothing_is_left(kept: Path) -> None:
    build.build_all()
    document: dict[str, Any] = json.loads(call("check", "--json"))
    assert all(row["ok"] for row in document["machine"]), document["machine"]
    assert document["machine"][-1]["what"] == "loading"
    rows = {row["variant"]: row for row in document["variants"]}
    assert list(rows) == list(VARIANTS)
    bad = {name: row["found"] for name, row in rows.items() if row["status"] not in ("ok", "absent")}
    assert not bad
    assert "spurious timeout: new data, nothing twice, undone" in rows["erto"]["found"]
    assert "real timeout: new data, duplicate ACK, head" in rows["bcr"]["found"]
    assert "corrupted segment named, window kept" in rows["ena-sack"]["found"]
    assert set(json.loads(kept.read_text())["results"]) == set(VARIANTS)
    assert not list(registry.cgroup_folder().glob(f"bed-{os.getpid()}-*"))


def in_session(session: int) -> list[int]:
    """Processes of a session."""
    found = list[int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@needs_root
def test_a_kill_of_the_check_leaves_nothing() -> None:
    build.build_all()
    command = "from fairlane_hosts.commands import app; app()"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "check", "erto"],
        env={**os.environ, "PYTHONPATH": str(HOSTS_ROOT)},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    folder = registry.cgroup_folder() / f"bed-{process.pid}-0"
    try:
        wait_until(lambda: (folder / "sender").exists() or process.poll() is not None, 30, "a program to be attached")
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(timeout=5)
    wait_until(lambda: not in_session(process.pid), 10, "the hosts' processes to end")
    loader.cleanup()
    assert not folder.exists()
    assert not [one for one in registry.read().hosts if folder in Path(one.cgroup).parents]


def test_an_unknown_variant_is_answered_with_those_that_there_are() -> None:
    assert "no TCP variant is called 'ertoo'; there are tahoe, reno" in call("check", "ertoo", code=3)


@needs_root
@pytest.mark.timed  # alone: no other test has the variants loaded
def test_a_program_that_the_kernel_refuses_is_left_out_and_the_others_load(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object without a congestion control of the name that is wanted stands for one that the verifier refuses."""
    del kept
    build.build_all()
    tags, folder = build.read_tags(), tmp_path / "build"
    folder.mkdir()
    for file in build.build_dir().iterdir():
        (folder / file.name).symlink_to(file)
    westwood, vegas = find_variant("westwood"), find_variant("vegas")
    (folder / str(westwood.object_name)).unlink()
    (folder / str(westwood.object_name)).symlink_to(build.build_dir() / str(vegas.object_name))
    monkeypatch.setenv("FAIRLANE_HOSTS_BUILD", str(folder))
    if registry.names():
        pytest.skip("another run has the variants loaded now")
    assert build.read_tags() == tags
    rows = {row["variant"]: row for row in json.loads(call("check", "westwood", "vegas", "--json", code=1))["variants"]}
    assert rows["westwood"]["status"] == "cannot"
    assert f"holds no map {westwood.congestion_control}" in rows["westwood"]["found"]
    assert rows["vegas"]["status"] == "ok"
    with loader.acquire() as lease:  # what a run does from now on
        assert vegas.congestion_control in lease.tags
        assert westwood.congestion_control not in lease.tags
    with pytest.raises(HostsError, match="variant westwood failed its check"):
        apply.use_on_host(westwood)


@pytest.fixture(scope="module")
def bed() -> Generator[CheckBed]:
    build.build_all()
    with loader.acquire() as lease, CheckBed(lease) as made:
        yield made


def without_programs(name: str) -> Variant:
    return dataclasses.replace(find_variant(name), programs=())


@needs_root
@pytest.mark.parametrize(
    ("probe", "variant", "why"),
    [
        (probes.erto_spurious, without_programs("erto"), "the timer sent the head again"),
        (probes.erto_real, without_programs("erto"), "the timer sent no new data"),
        (probes.frto_spurious, find_variant("newreno"), "segments were sent twice after a timeout for nothing"),
        (probes.whole_window, find_variant("newreno"), "its first flight is 2000 bytes where"),
        (probes.initial_window, dataclasses.replace(find_variant("reno"), defines={"FL_INITIAL_WINDOW": 3}), "not 3"),
        (probes.first_duplicate, find_variant("newreno"), "a retransmission at the first duplicate ACK did not come"),
        (probes.low_rto, find_variant("newreno"), "RTO 2"),
        (
            probes.runs,
            dataclasses.replace(find_variant("vegas"), name="nothing"),
            "the kernel has no congestion control 'fl_nothing'",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_trial_fails_when_the_variant_does_not_do_what_defines_it(
    bed: CheckBed, probe: probes.Probe, variant: Variant, why: str
) -> None:
    try:
        with pytest.raises(HostsError) as caught:
            probe(bed, variant)
    finally:
        bed.gate.open()
    assert why in caught.value.message
