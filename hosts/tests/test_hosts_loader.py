# SPDX-License-Identifier: Apache-2.0
"""The loader: clear refusals, sharing between instances, and nothing left behind, whoever is killed.

The real tests register algorithms of their own names at a socket of their own, so that they disturb no running instance.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fairlane_hosts import build, loader
from fairlane_hosts.errors import HostsError
from fairlane_hosts.variants import VARIANTS, bpf_variants, find_variant
from hosts_bed import HOSTS_ROOT, wait_until

pytestmark = pytest.mark.kernel

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="registers BPF programs: needs root")
GONE_TIMEOUT_S = 5


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[loader.Program]:
    """A holder of our own with one algorithm of our own."""
    build.build_all()
    monkeypatch.setenv("FAIRLANE_CC_SOCKET", str(tmp_path / "cc.sock"))
    name = f"hs_v{os.getpid() % 1000000}"
    output = tmp_path / f"{name}.bpf.o"
    build.compile_bpf("vegas.bpf.c", name, find_variant("vegas").defines, output)
    return [loader.Program(name, output, "first")]


def gone(name: str) -> None:
    wait_until(lambda: name not in loader.available(), GONE_TIMEOUT_S, f"{name} to be unregistered")


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "good"), [("5.15.0-91-generic", True), ("6.18.44", True), ("5.14.21", False), ("4.19", False)]
)
def test_kernels_before_5_15_are_refused(release: str, good: bool) -> None:
    (kernel,) = [item for item in loader.check(release) if item.what == "kernel"]
    assert (kernel.ok, kernel.found) == (good, release)
    if not good:
        with pytest.raises(HostsError, match=r"kernel: .*\n  BPF congestion control needs Linux 5.15 or newer"):
            loader.require([kernel])


def test_a_kernel_without_btf_is_refused(tmp_path: Path) -> None:
    checks = [item for item in loader.check(btf=tmp_path / "vmlinux") if "BTF" in item.what]
    with pytest.raises(HostsError, match=r"no .*vmlinux\n  .*CONFIG_DEBUG_INFO_BTF=y") as caught:
        loader.require(checks)
    assert caught.value.code == "kernel-unsupported"


def test_what_is_not_built_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_HOSTS_BUILD", str(tmp_path))
    with pytest.raises(
        HostsError, match=r"missing in .*fl_vegas\.bpf\.o.*\n  python -m fairlane_hosts\.build"
    ) as caught:
        loader.require([item for item in loader.check() if item.what == "compiled programs"])
    assert caught.value.code == "not-built"
    with pytest.raises(HostsError, match="is not built"):
        loader.programs()


def test_a_missing_compiler_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_HOSTS_BUILD", str(tmp_path / "build"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostsError, match=r"no gcc on the PATH \(nor in \$CC\)\n  apt install clang"):
        build.build_all()


def test_an_unknown_variant_names_those_that_there_are() -> None:
    with pytest.raises(
        HostsError, match="no TCP variant is called 'tahoo'; there are tahoe, reno, newreno, sack, vegas, vegas-linux"
    ):
        find_variant("tahoo")


def test_the_table_holds_what_the_kernel_takes() -> None:
    keys = {tuple(variant.sysctls) for variant in VARIANTS.values()}
    assert len(keys) == 1, "going from one variant to another must leave nothing behind"
    order = list(keys.pop())
    assert order.index("tcp_max_reordering") < order.index("tcp_reordering")
    names = [variant.congestion_control for variant in bpf_variants()]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 15 and name.startswith("fl_") for name in names)


def test_only_what_changed_is_compiled() -> None:
    build.build_all()
    assert build.build_all() == []
    parameters = dict(find_variant("vegas").defines)
    first = build.variant_tag("vegas.bpf.c", "fl_vegas", parameters)
    assert first != build.variant_tag("vegas.bpf.c", "fl_vegas", {**parameters, "FL_ALPHA": 2})


# --- the kernel -----------------------------------------------------------------------------------------------------


@needs_root
def test_a_lease_registers_and_its_end_unregisters(private: list[loader.Program]) -> None:
    (program,) = private
    with loader.acquire(private) as lease:
        assert program.name in loader.available()
        assert dict(lease.status.tags) == {program.name: "first"}
    gone(program.name)
    wait_until(lambda: loader.status() is None, GONE_TIMEOUT_S, "the holder to end")


@needs_root
def test_two_instances_share_one_registration(private: list[loader.Program]) -> None:
    (program,) = private
    with loader.acquire(private) as first:
        with loader.acquire(private) as second:
            assert first.status.pid == second.status.pid
        assert loader.status() is not None
        assert program.name in loader.available()
    gone(program.name)


@needs_root
def test_a_new_lease_right_after_the_last_one_ended(private: list[loader.Program]) -> None:
    for _ in range(10):
        with loader.acquire(private):
            assert private[0].name in loader.available()
    gone(private[0].name)


@needs_root
def test_another_build_is_refused_and_the_first_stays(private: list[loader.Program]) -> None:
    (program,) = private
    other = [loader.Program(program.name, program.path, "second")]
    with loader.acquire(private):
        with pytest.raises(HostsError, match=r"in use from another build .* has first, this build is second"):
            loader.acquire(other)
        assert program.name in loader.available()
    gone(program.name)


@needs_root
def test_a_process_can_be_the_reference(private: list[loader.Program]) -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        with loader.acquire(private) as lease:
            lease.hold_process(process.pid)
        assert private[0].name in loader.available()
    finally:
        process.kill()
        process.wait(timeout=5)
    gone(private[0].name)


@needs_root
def test_holding_a_process_that_is_not_there_is_refused(private: list[loader.Program]) -> None:
    with (
        loader.acquire(private) as lease,
        pytest.raises(HostsError, match="error hold: process 4194000: No such process"),
    ):
        lease.hold_process(4194000)
    gone(private[0].name)


def killed_user(program: loader.Program) -> subprocess.Popen[str]:
    code = (
        "import sys, time; from pathlib import Path; from fairlane_hosts import loader;"
        f"lease = loader.acquire([loader.Program({program.name!r}, Path({str(program.path)!r}), {program.tag!r})]);"
        "print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HOSTS_ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@needs_root
def test_a_killed_user_leaves_nothing(private: list[loader.Program]) -> None:
    user = killed_user(private[0])
    user.send_signal(signal.SIGKILL)
    user.wait(timeout=5)
    gone(private[0].name)
    wait_until(lambda: loader.status() is None, GONE_TIMEOUT_S, "the holder to end")


@needs_root
def test_a_killed_holder_leaves_nothing_after_cleanup(private: list[loader.Program]) -> None:
    (program,) = private
    with loader.acquire(private) as lease:
        os.kill(lease.status.pid, signal.SIGKILL)
        if not lease.status.survives_kill:
            gone(program.name)
        loader.cleanup(names=[program.name])
        assert program.name not in loader.available()
        with pytest.raises(HostsError, match=r"went away|does not answer"):
            lease.hold_process(os.getpid())
    with loader.acquire(private):
        assert program.name in loader.available()
    gone(program.name)


@needs_root
def test_without_struct_ops_links_a_killed_holder_leaves_names_until_cleanup(
    private: list[loader.Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of kernels before 6.4, taken here on purpose."""
    (program,) = private
    monkeypatch.setenv("FAIRLANE_CC_CLASSIC", "1")
    with loader.acquire(private) as lease:
        assert lease.status.survives_kill
    gone(program.name)
    with loader.acquire(private) as lease:
        os.kill(lease.status.pid, signal.SIGKILL)
        wait_until(lambda: loader.status() is None, GONE_TIMEOUT_S, "the holder to end")
        assert program.name in loader.available()
        with pytest.raises(HostsError, match=r"the name is registered already.*\n  `fairlane hosts cleanup`") as caught:
            loader.acquire(private)
        assert caught.value.code == "name-taken"
        assert loader.cleanup(names=[program.name]) == [program.name]
        assert program.name not in loader.available()
        assert loader.cleanup(names=[program.name]) == []


@needs_root
def test_cleanup_spares_what_is_in_use_unless_forced(private: list[loader.Program]) -> None:
    (program,) = private
    with loader.acquire(private):
        assert loader.cleanup(names=[program.name]) == []
        assert program.name in loader.available()
        assert loader.cleanup(force=True, names=[program.name]) == [program.name]
        gone(program.name)


@needs_root
def test_an_object_that_the_kernel_refuses_registers_nothing(private: list[loader.Program], tmp_path: Path) -> None:
    (program,) = private
    broken = tmp_path / "broken.o"
    broken.write_bytes(b"not an ELF file")
    before = loader.available()
    with pytest.raises(HostsError, match="cannot open the BPF object"):
        loader.acquire([program, loader.Program("hs_broken", broken, "x")])
    with pytest.raises(HostsError, match="holds no congestion control of this name"):
        loader.acquire([program, loader.Program("hs_other", program.path, "x")])
    wait_until(lambda: loader.available() == before, GONE_TIMEOUT_S, "the first program to be unregistered again")
