# SPDX-License-Identifier: Apache-2.0
"""Host programs: attached to one host, shared, counted, and gone with everything they set, whoever is killed.

One namespace whose lo is the interface; a registry of our own, so that no running instance is disturbed.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bpf_objects import closing, programs_of_cgroup
from fairlane_hosts import bpf, build, cgroups, loader, registry
from fairlane_hosts.apply import run_in_namespace
from fairlane_hosts.errors import HostsError
from fairlane_hosts.host import Attachment, Host, attach, host_of
from fairlane_hosts.programs import PROGRAMS, find_program
from fairlane_hosts.variants import VARIANTS, find_variant
from hosts_bed import HOSTS_ROOT, run, wait_until

pytestmark = pytest.mark.kernel

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="attaches BPF programs: needs root")
KILLED_TIMEOUT_S = 60
RATELIMIT = Path("/proc/sys/net/ipv4/tcp_invalid_ratelimit")
_counter = itertools.count()


@dataclass
class Place:
    """A host of our own with one process in it."""

    netns: str
    process: subprocess.Popen[bytes]
    host: Host
    algorithms: list[loader.Program]

    def ratelimit(self) -> str:
        return run_in_namespace(self.host.netns, RATELIMIT.read_text).strip()

    def tc_links(self) -> list[Path]:
        """Pins of the kernel's tcx links of the programs."""
        found = list[Path]()
        for pin in registry.pins("hosts").glob("*/*"):
            with closing(bpf.open_pin(pin)) as link:
                if "link_type:\ttcx\n" in Path(f"/proc/self/fdinfo/{link}").read_text():
                    found.append(pin)
        return found

    def attached(self) -> str:
        return " ".join(programs_of_cgroup(self.host.cgroup))

    def is_clean(self) -> bool:
        """Nothing of ours is left of the host, and its process is back."""
        folder = registry.cgroup_folder()
        return (
            not folder.exists()
            and not self.tc_links()
            and self.ratelimit() != "0"
            and cgroups.cgroup_of(self.process.pid) == cgroups.cgroup_of(os.getpid())
        )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Place]:
    build.build_all()
    monkeypatch.setenv("FAIRLANE_CC_STATE", str(tmp_path / "cc.json"))
    algorithm = f"hp{os.getpid() % 1000000}"
    build.compile_bpf(build.SENDER_SOURCE, algorithm, find_variant("newreno").definitions, tmp_path / "object")
    name = f"hp{os.getpid()}x{next(_counter)}"
    run("ip", "netns", "add", name)
    process = subprocess.Popen(["ip", "netns", "exec", name, "sleep", "60"])
    try:
        netns = Path("/run/netns") / name
        wait_until(
            lambda: Path(f"/proc/{process.pid}/ns/net").stat().st_ino == netns.stat().st_ino,
            5,
            "the process to be in its namespace",
        )
        host = host_of(f"test/{name}", netns, "lo")
        yield Place(name, process, host, [loader.Program(algorithm, tmp_path / "object", "first")])
    finally:
        process.kill()
        process.wait(timeout=5)
        run("ip", "netns", "del", name)


# --- refusals -------------------------------------------------------------------------------------------------------


def test_variants_name_programs_that_there_are() -> None:
    for variant in VARIANTS.values():
        for program in variant.programs:
            assert find_program(program).kernel <= variant.kernel
    with pytest.raises(HostsError, match="no host program is called 'enna'; there are ena, ") as caught:
        find_program("enna")
    assert caught.value.kind == "unknown-program"
    assert all(len(program.counters) <= 16 for program in PROGRAMS.values())


def test_a_machine_without_cgroup_v2_is_refused(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n")
    with pytest.raises(HostsError, match="need cgroup v2, and none is mounted\n  mkdir") as caught:
        cgroups.mount_point(mounts)
    assert caught.value.kind == "kernel-unsupported"
    (found,) = [item for item in loader.check_programs(mounts=mounts) if item.what == "cgroup v2"]
    assert not found.ok
    mounts.write_text("a /mnt/far cgroup2 rw 0 0\nb /sys/fs/cgroup/unified cgroup2 rw 0 0\n")
    assert cgroups.mount_point(mounts) == Path("/sys/fs/cgroup/unified")


def test_a_kernel_that_is_too_old_for_a_program_is_refused() -> None:
    checks = loader.check_programs([PROGRAMS["ena"]], release="5.15.0-91-generic")
    (kernel,) = [item for item in checks if item.what == "kernel for host programs"]
    assert not kernel.ok
    with pytest.raises(HostsError, match=r"5\.15\.0-91-generic is too old for ena \(5\.17\)"):
        loader.require([kernel])


@pytest.mark.parametrize("name", ["../x", "a b", "", "/x", "a//b", "h\n1"])
def test_names_that_are_no_folder_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(HostsError, match="names no cgroup: want letters, digits"):
        cgroups.make(tmp_path, name)


@needs_root
def test_a_host_elsewhere_and_an_interface_that_is_not_there_are_refused(place: Place) -> None:
    with loader.acquire(place.algorithms) as lease:
        with pytest.raises(HostsError, match=r"is not below .*\n  host_of\(\) names the right one"):
            attach(Host(place.host.netns, cgroups.mount_point() / "other"), ["ena"], lease)
        with pytest.raises(HostsError, match="there is no interface eth7 in /run/netns/"):
            attach(Host(place.host.netns, place.host.cgroup, "eth7"), ["ena"], lease)
        with pytest.raises(HostsError, match="there is no network namespace /run/netns/nobody"):
            attach(Host(Path("/run/netns/nobody"), place.host.cgroup), ["ena"], lease)
        assert place.is_clean()


@needs_root
def test_a_program_that_the_kernel_refuses_leaves_nothing(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "build"
    broken.mkdir()
    for path in build.build_dir().iterdir():
        (broken / path.name).symlink_to(path)
    (broken / "program_mrto.bpf.o").unlink()
    (broken / "program_mrto.bpf.o").write_bytes(b"not an ELF file")
    monkeypatch.setenv("FAIRLANE_HOSTS_BUILD", str(broken))
    with (
        loader.acquire(place.algorithms) as lease,
        pytest.raises(HostsError, match="cannot open the BPF object of program mrto"),
    ):
        attach(place.host, ["ena", "mrto"], lease)
    assert place.is_clean()


# --- life and death ---------------------------------------------------------------------------------------------------


@needs_root
def test_attached_while_it_lives_and_gone_when_closed(place: Place) -> None:
    before = place.ratelimit()
    assert before != "0"
    with loader.acquire(place.algorithms) as lease:
        with attach(place.host, ["ena", "mrto"], lease) as attachment:
            assert attachment.counters() == dict.fromkeys([*PROGRAMS["ena"].counters, "mrto_sockets"], 0)
            assert cgroups.processes(place.host.cgroup) == [place.process.pid]
            assert "ena" in place.attached()
            assert "mrto" in place.attached()
            assert len(place.tc_links()) == 2
            assert place.ratelimit() == "0"
        assert place.is_clean()
        assert place.ratelimit() == before
        attachment.close()


@needs_root
def test_two_users_share_a_program_and_the_last_one_takes_it_away(place: Place) -> None:
    with loader.acquire(place.algorithms) as lease, attach(place.host, ["ena"], lease):
        with loader.acquire(place.algorithms) as other, attach(place.host, ["ena"], other):
            assert len(registry.read().hosts) == 1
        assert len(place.tc_links()) == 2
        with attach(place.host, ["ena"], lease):
            pass
        assert len(place.tc_links()) == 2
    assert place.is_clean()


@needs_root
def test_a_process_that_is_held_keeps_what_was_attached(place: Place) -> None:
    holding = subprocess.Popen(["sleep", "60"])
    try:
        with loader.acquire(place.algorithms) as lease:
            attach(place.host, ["ena"], lease)
            lease.hold_process(holding.pid)
        assert len(place.tc_links()) == 2
    finally:
        holding.kill()
        holding.wait(timeout=5)
    loader.cleanup()
    assert place.is_clean()


@needs_root
def test_a_command_enters_the_host_s_cgroup(place: Place) -> None:
    with loader.acquire(place.algorithms) as lease, attach(place.host, ["mrto"], lease):
        found = run(*place.host.entering(["cat", "/proc/self/cgroup"]))
        assert f"0::/{place.host.cgroup.relative_to(cgroups.mount_point())}\n" in found


def leave(place: Place) -> None:
    """Another process attaches a program to the place, and is killed."""
    program = place.algorithms[0]
    code = (
        "import os, signal; from pathlib import Path; from fairlane_hosts import loader, host;"
        f"lease = loader.acquire([loader.Program({program.name!r}, Path({str(program.path)!r}), {program.tag!r})]);"
        f"h = host.Host(Path({str(place.host.netns)!r}), Path({str(place.host.cgroup)!r}), 'lo');"
        "a = host.attach(h, ['ena'], lease); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "PYTHONPATH": str(HOSTS_ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, timeout=KILLED_TIMEOUT_S, check=False)
    assert done.returncode == -signal.SIGKILL


@needs_root
@pytest.mark.parametrize("classic", [False, True], ids=["tcx", "filters"])
@pytest.mark.parametrize("cleanup", [True, False], ids=["cleanup", "the next run"])
def test_what_a_killed_user_leaves_goes_with(
    place: Place, monkeypatch: pytest.MonkeyPatch, cleanup: bool, classic: bool
) -> None:
    if classic:
        monkeypatch.setenv("FAIRLANE_CC_CLASSIC", "1")
    before = place.ratelimit()
    leave(place)
    assert [one.program for one in registry.read().hosts] == ["ena"]
    assert place.host.cgroup.exists()
    assert (place.ratelimit(), len(place.tc_links())) == ("0", 0 if classic else 2)
    if cleanup:
        removed = loader.cleanup()
        assert place.algorithms[0].name in removed
        assert any("cgroup" in name for name in removed)
    else:
        loader.acquire(place.algorithms).close()
    assert place.is_clean()
    assert place.ratelimit() == before
    assert "ena" not in run("tc", "-n", place.netns, "filter", "show", "dev", "lo", "ingress")
    assert (registry.names(), registry.read().hosts) == ({}, [])


@needs_root
def test_what_is_left_of_a_host_that_has_ended_goes_with_the_next_run(place: Place) -> None:
    leave(place)
    other = f"{place.netns}x"
    run("ip", "netns", "add", other)
    try:
        process = place.process
        process.kill()
        process.wait(timeout=5)
        run("ip", "netns", "del", place.netns)
        namespace = Path("/run/netns") / other
        with (
            loader.acquire(place.algorithms) as lease,
            attach(Host(namespace, place.host.cgroup, "lo"), ["ena"], lease),
        ):
            assert run_in_namespace(namespace, RATELIMIT.read_text).strip() == "0"
        assert not registry.cgroup_folder().exists()
    finally:
        run("ip", "netns", "del", other)
        run("ip", "netns", "add", place.netns)


@needs_root
def test_a_forced_cleanup_takes_programs_away_from_their_users(place: Place) -> None:
    with loader.acquire(place.algorithms) as lease, attach(place.host, ["ena"], lease) as attachment:
        removed = loader.cleanup(force=True)
        assert removed[0] == place.algorithms[0].name
        assert place.attached() == ""
        assert not place.host.cgroup.exists()
        assert place.ratelimit() != "0"
        assert attachment.counters()["ena_kept"] == 0
    assert place.is_clean()


@needs_root
def test_cleanup_spares_what_is_attached(place: Place) -> None:
    with loader.acquire(place.algorithms) as lease, attach(place.host, ["ena"], lease):
        (registry.cgroup_folder() / "left" / "h1").mkdir(parents=True)
        removed = loader.cleanup()
        assert [name.partition("/")[2] for name in removed] == ["left/h1", "left"]
        assert len(place.tc_links()) == 2
    assert place.is_clean()


@needs_root
def test_without_tcx_a_filter_does_and_goes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of kernels before 6.6, taken here on purpose."""
    monkeypatch.setenv("FAIRLANE_CC_CLASSIC", "1")
    with loader.acquire(place.algorithms) as lease, attach(place.host, ["ena"], lease):
        assert "ena_ingress" in run("tc", "-n", place.netns, "filter", "show", "dev", "lo", "ingress")
        assert "ena_egress" in run("tc", "-n", place.netns, "filter", "show", "dev", "lo", "egress")
    assert "ena" not in run("tc", "-n", place.netns, "filter", "show", "dev", "lo", "egress")
    assert place.is_clean()


def test_an_attachment_of_nothing_is_nothing(tmp_path: Path) -> None:
    del tmp_path
    host = Host(None, Path("/nowhere"))
    assert isinstance(attach(host, [], None), Attachment)  # pyright: ignore[reportArgumentType]
