# SPDX-License-Identifier: Apache-2.0
"""The loader: clear refusals, sharing between instances, and nothing left behind, whoever is killed.

The real tests register algorithms of their own names, with a registry of their own, so that they disturb no running instance.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from fairlane_hosts import build, loader, registry
from fairlane_hosts.errors import HostsError
from fairlane_hosts.variants import VARIANTS, bpf_variants, find_variant
from hosts_bed import HOSTS_ROOT, wait_until

pytestmark = pytest.mark.kernel

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="registers BPF programs: needs root")
READY_TIMEOUT_S = 60  # an interpreter starts, and the kernel verifies a program, on a busy machine


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[loader.Program]:
    """A registry of our own with one algorithm of our own."""
    build.build_all()
    monkeypatch.setenv("FAIRLANE_CC_STATE", str(tmp_path / "cc.json"))
    name = f"hs_v{os.getpid() % 1000000}"
    output = tmp_path / f"{name}.bpf.o"
    build.compile_bpf(build.SENDER_SOURCE, name, find_variant("vegas").definitions, output)
    return [loader.Program(name, output, "first")]


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
    assert caught.value.kind == "kernel-unsupported"


def test_what_is_not_built_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_HOSTS_BUILD", str(tmp_path))
    with pytest.raises(HostsError, match=r"none in .*\n  make setup") as caught:
        loader.require([item for item in loader.check() if item.what == "compiled programs"])
    (tmp_path / "fl_reno.bpf.o").touch()
    with pytest.raises(
        HostsError, match=r"missing: fl_tahoe\.bpf\.o, .*fl_vegas\.bpf\.o, .* in .*\n  make setup"
    ) as caught:
        loader.require([item for item in loader.check() if item.what == "compiled programs"])
    assert "fl_reno.bpf" not in str(caught.value)
    assert caught.value.kind == "not-built"
    with pytest.raises(HostsError, match="is not built"):
        loader.programs()


def test_a_missing_compiler_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_HOSTS_BUILD", str(tmp_path / "build"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostsError, match=r"no clang on the PATH \(nor in \$CLANG\)\n  apt install clang"):
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
    parameters = dict(find_variant("vegas").definitions)
    first = build.tag_of(build.SENDER_SOURCE, "fl_vegas", parameters)
    assert first != build.tag_of(build.SENDER_SOURCE, "fl_vegas", {**parameters, "FL_ALPHA": 2})


def test_a_sender_that_the_kernel_is_too_old_for_keeps_no_other_one_out(monkeypatch: pytest.MonkeyPatch) -> None:
    build.build_all()

    def old(_release: str) -> tuple[int, int]:
        return 6, 1

    monkeypatch.setattr("fairlane_hosts.check.results.path", lambda: Path("/nowhere"))
    monkeypatch.setattr("fairlane_hosts.bpf.kernel_version", old)
    names = {program.name for program in loader.programs()}
    assert "fl_bbr" not in names
    assert {"fl_cubic", "fl_erto", "fl_reno"} <= names
    assert "fl_bbr" in {program.name for program in loader.programs(refused_too=True)}


# --- the kernel -----------------------------------------------------------------------------------------------------


@needs_root
def test_a_lease_registers_and_its_end_unregisters(private: list[loader.Program]) -> None:
    (program,) = private
    with loader.acquire(private) as lease:
        assert program.name in loader.available()
        assert lease.tags == registry.names() == {program.name: "first"}
    assert program.name not in loader.available()
    assert (registry.names(), registry.read().hosts) == ({}, [])
    lease.close()


@needs_root
def test_two_instances_share_one_registration(private: list[loader.Program]) -> None:
    (program,) = private
    first = loader.acquire(private)
    with loader.acquire(private):
        first.close()
        assert program.name in loader.available(), "the second one keeps it, though the first one made it"
    assert program.name not in loader.available()


@needs_root
def test_a_new_lease_right_after_the_last_one_ended(private: list[loader.Program]) -> None:
    for _ in range(10):
        with loader.acquire(private):
            assert private[0].name in loader.available()
    assert private[0].name not in loader.available()


@needs_root
def test_another_build_is_refused_and_the_first_stays(private: list[loader.Program]) -> None:
    (program,) = private
    other = [loader.Program(program.name, program.path, "second")]
    with loader.acquire(private):
        with pytest.raises(HostsError, match=r"in use from another build .* is first, this build is second") as caught:
            loader.acquire(other)
        assert caught.value.kind == "other-build"
        assert program.name in loader.available()
    with loader.acquire(other) as lease:
        assert lease.tags == {program.name: "second"}


@needs_root
def test_a_name_of_somebody_else_is_said(private: list[loader.Program], monkeypatch: pytest.MonkeyPatch) -> None:
    with loader.acquire(private), monkeypatch.context() as elsewhere:
        elsewhere.setenv("FAIRLANE_CC_STATE", str(private[0].path.with_name("other.json")))
        with pytest.raises(
            HostsError,
            match=r"the name is registered already\n  another program, or a run with another \$FAIRLANE_CC_STATE",
        ) as caught:
            loader.acquire(private)
        assert caught.value.kind == "name-taken"


@pytest.fixture(params=[False, True], ids=["links", "classic"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With links of congestion controls, and as on kernels before 6.4, which have none."""
    if request.param:
        monkeypatch.setenv("FAIRLANE_CC_CLASSIC", "1")


@needs_root
def test_a_process_can_be_the_reference(private: list[loader.Program], way: None) -> None:
    del way
    process = subprocess.Popen(["sleep", "60"])
    try:
        with loader.acquire(private) as lease:
            lease.hold_process(process.pid)
        assert private[0].name in loader.available()
        with loader.acquire(private):
            pass
        assert loader.cleanup() == []
        assert private[0].name in loader.available()
    finally:
        process.kill()  # a zombie until wait(): it counts as ended
    wait_until(lambda: loader.cleanup() == [private[0].name], READY_TIMEOUT_S, "the process to end")
    process.wait(timeout=5)
    assert private[0].name not in loader.available()


@needs_root
def test_holding_a_process_that_is_not_there_is_refused(private: list[loader.Program]) -> None:
    with (
        loader.acquire(private) as lease,
        pytest.raises(HostsError, match="there is no process 4194000 to keep the TCP variants for"),
    ):
        lease.hold_process(4194000)
    assert private[0].name not in loader.available()


@needs_root
def test_a_number_that_another_process_has_now_is_no_user(private: list[loader.Program]) -> None:
    loader.acquire(private)
    registry.path().write_text(registry.path().read_text().replace(f'"{os.getpid()} ', '"1 '))
    assert loader.cleanup() == [private[0].name]


@contextlib.contextmanager
def user_of(program: loader.Program) -> Generator[subprocess.Popen[bytes]]:
    """Another process that has a lease; it is there, and killed at the end."""
    code = (
        "import sys, time; from pathlib import Path; from fairlane_hosts import loader;"
        f"lease = loader.acquire([loader.Program({program.name!r}, Path({str(program.path)!r}), {program.tag!r})]);"
        "time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(HOSTS_ROOT)})
    try:
        wait_until(lambda: str(process.pid) in str(registry.read().users), READY_TIMEOUT_S, "the other process's lease")
        yield process
    finally:
        process.kill()
        process.wait(timeout=READY_TIMEOUT_S)


@needs_root
@pytest.mark.parametrize("cleanup", [True, False], ids=["cleanup", "the next run"])
def test_what_a_killed_user_leaves_goes_with(private: list[loader.Program], way: None, cleanup: bool) -> None:
    del way
    (program,) = private
    with user_of(program):
        assert loader.cleanup() == []
    assert program.name in loader.available(), "pinned: no process has it open"
    if cleanup:
        assert loader.cleanup() == [program.name]
        assert loader.cleanup() == []
    else:
        other = loader.Program(program.name, program.path, "second")
        with loader.acquire([other]) as lease:
            assert lease.tags == registry.names() == {program.name: "second"}
    assert program.name not in loader.available()
    assert (registry.names(), registry.read().hosts) == ({}, [])
    assert not registry.pins("").exists()


@needs_root
def test_a_killed_user_takes_nothing_from_the_other(private: list[loader.Program], way: None) -> None:
    del way
    with user_of(private[0]), loader.acquire(private):
        pass
    with loader.acquire(private):
        assert loader.cleanup() == []
        assert private[0].name in loader.available()
    assert private[0].name not in loader.available()


@needs_root
def test_cleanup_spares_what_is_in_use_unless_forced(private: list[loader.Program], way: None) -> None:
    del way
    (program,) = private
    with loader.acquire(private):
        assert loader.cleanup() == []
        assert program.name in loader.available()
        assert loader.cleanup(force=True) == [program.name]
        assert program.name not in loader.available()
        with loader.acquire(private):
            assert program.name in loader.available()
    assert program.name not in loader.available()


@needs_root
def test_without_a_bpf_file_system_of_the_machine_one_is_mounted(
    private: list[loader.Program], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = tmp_path / "run" / "bpf"
    monkeypatch.setattr(registry, "MACHINE_PINS", tmp_path)
    monkeypatch.setattr(registry, "OWN_PINS", mount)
    try:
        with loader.acquire(private):
            assert os.path.ismount(mount)
            assert registry.pins("names").is_relative_to(mount)
            assert private[0].name in loader.available()
    finally:
        subprocess.run(["umount", mount], check=True, timeout=20)
    assert private[0].name not in loader.available()


@needs_root
def test_an_object_that_the_kernel_refuses_registers_nothing(private: list[loader.Program], tmp_path: Path) -> None:
    (program,) = private
    broken = tmp_path / "broken.o"
    broken.write_bytes(b"not an ELF file")
    before = loader.available()
    with pytest.raises(HostsError, match=r"hs_broken: cannot open the BPF object: .*\(libbpf: ") as caught:
        loader.acquire([program, loader.Program("hs_broken", broken, "x")])
    assert caught.value.kind == "refused"
    assert loader.available() == before
    other = loader.Program("hs_other", program.path, "x")
    with pytest.raises(HostsError, match="the BPF object holds no map hs_other"):
        loader.acquire([program, other])
    assert loader.available() == before
    refused = dict[str, str]()
    with loader.acquire([other, program], refused) as lease:
        assert (list(lease.tags), list(refused)) == ([program.name], ["hs_other"])


@needs_root
def test_a_broken_registry_is_begun_anew(private: list[loader.Program]) -> None:
    registry.path().write_text('{"users": [')
    with loader.acquire(private):
        assert list(registry.names()) == [private[0].name]


@needs_root
def test_a_lock_that_does_not_come_is_said(private: list[loader.Program], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "LOCK_TIMEOUT_S", 0.05)
    with (
        registry.opened(),
        pytest.raises(HostsError, match=r"another process keeps .*cc\.lock locked") as caught,
    ):
        loader.acquire(private)
    assert caught.value.kind == "lease"
