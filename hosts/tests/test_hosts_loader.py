# SPDX-License-Identifier: Apache-2.0
"""The loader: clear refusals, sharing between instances, and nothing left behind, whoever is killed.

The real tests register algorithms of their own names, with a registry of their own, so that they disturb no running instance.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairlane_hosts import build, loader, registry
from fairlane_hosts.errors import HostsError
from fairlane_hosts.variants import VARIANTS, bpf_variants, find_variant
from hosts_bed import HOSTS_ROOT, do_nothing, wait_until

pytestmark = pytest.mark.kernel

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="registers BPF programs: needs root")
GONE_TIMEOUT_S = 5


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[loader.Program]:
    """A registry of our own with one algorithm of our own."""
    build.build_all()
    monkeypatch.setenv("FAIRLANE_CC_STATE", str(tmp_path / "cc.json"))
    name = f"hs_v{os.getpid() % 1000000}"
    output = tmp_path / f"{name}.bpf.o"
    build.compile_bpf(build.SENDER_SOURCE, name, find_variant("vegas").definitions, output)
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
    with pytest.raises(HostsError, match=r"none in .*\n  make setup") as caught:
        loader.require([item for item in loader.check() if item.what == "compiled programs"])
    (tmp_path / "fl_reno.bpf.o").touch()
    with pytest.raises(
        HostsError, match=r"missing: fl_tahoe\.bpf\.o, .*fl_vegas\.bpf\.o, .* in .*\n  make setup"
    ) as caught:
        loader.require([item for item in loader.check() if item.what == "compiled programs"])
    assert "fl_reno.bpf" not in str(caught.value)
    assert caught.value.code == "not-built"
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
        assert lease.tags == dict(loader.status().tags) == {program.name: "first"}
    assert program.name not in loader.available()
    assert loader.status() == loader.Status({})
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
    gone(private[0].name)


@needs_root
def test_another_build_is_refused_and_the_first_stays(private: list[loader.Program]) -> None:
    (program,) = private
    other = [loader.Program(program.name, program.path, "second")]
    with loader.acquire(private):
        with pytest.raises(HostsError, match=r"in use from another build .* is first, this build is second") as caught:
            loader.acquire(other)
        assert caught.value.code == "other-build"
        assert program.name in loader.available()
    with loader.acquire(other) as lease:
        assert lease.tags == {program.name: "second"}


@needs_root
def test_a_name_of_somebody_else_is_said(private: list[loader.Program], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "ENDING_TIMEOUT_S", 0)
    with loader.acquire(private), monkeypatch.context() as elsewhere:
        elsewhere.setenv("FAIRLANE_CC_STATE", str(private[0].path.with_name("other.json")))
        with pytest.raises(HostsError, match=r"the name is registered already\n  `fairlane hosts cleanup`") as caught:
            loader.acquire(private)
        assert caught.value.code == "name-taken"


@needs_root
@pytest.mark.parametrize("classic", [False, True])
def test_a_process_can_be_the_reference(
    private: list[loader.Program], monkeypatch: pytest.MonkeyPatch, classic: bool
) -> None:
    if classic:
        monkeypatch.setenv("FAIRLANE_CC_CLASSIC", "1")
    process = subprocess.Popen(["sleep", "60"])
    try:
        with loader.acquire(private) as lease:
            lease.hold_process(process.pid)
        assert private[0].name in loader.available()
        with loader.acquire(private):
            pass
        assert loader.cleanup(names=[private[0].name]) == []
        assert private[0].name in loader.available()
    finally:
        process.kill()
        process.wait(timeout=5)
    gone(private[0].name)


@needs_root
def test_holding_a_process_that_is_not_there_is_refused(private: list[loader.Program]) -> None:
    with (
        loader.acquire(private) as lease,
        pytest.raises(HostsError, match="cannot keep the TCP variants for process 4194000: No such process"),
    ):
        lease.hold_process(4194000)
    gone(private[0].name)


def user_of(program: loader.Program) -> subprocess.Popen[str]:
    """Another process that has a lease; it is there."""
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


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=5)


@needs_root
def test_a_killed_user_leaves_nothing(private: list[loader.Program]) -> None:
    kill(user_of(private[0]))
    gone(private[0].name)
    assert loader.status() == loader.Status({})


@needs_root
def test_a_killed_user_takes_nothing_from_the_other(private: list[loader.Program]) -> None:
    user = user_of(private[0])
    with loader.acquire(private):
        kill(user)
        assert private[0].name in loader.available()
    gone(private[0].name)


@needs_root
def test_without_struct_ops_links_a_killed_user_leaves_nothing(
    private: list[loader.Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of kernels before 6.4, taken here on purpose."""
    (program,) = private
    monkeypatch.setenv("FAIRLANE_CC_CLASSIC", "1")
    with loader.acquire(private), loader.acquire(private):
        assert program.name in loader.available()
    assert program.name not in loader.available()
    kill(user_of(program))
    gone(program.name)


@needs_root
@pytest.mark.parametrize("cleanup", [True, False], ids=["cleanup", "the next run"])
def test_without_struct_ops_links_names_that_were_left_are_removed(
    private: list[loader.Program], monkeypatch: pytest.MonkeyPatch, cleanup: bool
) -> None:
    """The user and its keeper were killed."""
    (program,) = private
    monkeypatch.setenv("FAIRLANE_CC_CLASSIC", "1")
    monkeypatch.setattr(loader.Lease, "undo_when_killed", do_nothing)
    monkeypatch.setattr(registry, "undo_ended", list[str])
    loader.acquire(private).close()
    monkeypatch.undo()
    monkeypatch.setenv("FAIRLANE_CC_STATE", str(program.path.with_name("cc.json")))
    assert program.name in loader.available()
    if cleanup:
        assert loader.cleanup(names=[program.name]) == [program.name]
        assert loader.cleanup(names=[program.name]) == []
    else:
        with loader.acquire(private):
            assert program.name in loader.available()
    assert program.name not in loader.available()


@needs_root
@pytest.mark.parametrize("classic", [False, True])
def test_cleanup_spares_what_is_in_use_unless_forced(
    private: list[loader.Program], monkeypatch: pytest.MonkeyPatch, classic: bool
) -> None:
    if classic:
        monkeypatch.setenv("FAIRLANE_CC_CLASSIC", "1")
    (program,) = private
    with loader.acquire(private):
        assert loader.cleanup(names=[program.name]) == []
        assert program.name in loader.available()
        assert loader.cleanup(force=True, names=[program.name]) == [program.name]
        assert program.name not in loader.available()
        with loader.acquire(private):
            assert program.name in loader.available()
    gone(program.name)


@needs_root
def test_an_object_that_the_kernel_refuses_registers_nothing(private: list[loader.Program], tmp_path: Path) -> None:
    (program,) = private
    broken = tmp_path / "broken.o"
    broken.write_bytes(b"not an ELF file")
    before = loader.available()
    with pytest.raises(HostsError, match=r"hs_broken: cannot open the BPF object: .*\(libbpf: ") as caught:
        loader.acquire([program, loader.Program("hs_broken", broken, "x")])
    assert caught.value.code == "refused"
    assert loader.available() == before
    other = loader.Program("hs_other", program.path, "x")
    with pytest.raises(HostsError, match="the BPF object holds no congestion control hs_other"):
        loader.acquire([program, other])
    assert loader.available() == before
    refused = dict[str, str]()
    with loader.acquire([other, program], refused) as lease:
        assert (list(lease.tags), list(refused)) == ([program.name], ["hs_other"])


@needs_root
def test_a_broken_registry_is_begun_anew(private: list[loader.Program]) -> None:
    registry.path().write_text('{"names": [')
    with loader.acquire(private):
        assert list(loader.status().tags) == [private[0].name]


@needs_root
def test_a_lock_that_does_not_come_is_said(private: list[loader.Program], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "LOCK_TIMEOUT_S", 0.05)
    with (
        registry.opened(),
        pytest.raises(HostsError, match=r"another process keeps .*cc\.lock locked") as caught,
    ):
        loader.acquire(private)
    assert caught.value.code == "lease"
