#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make doctor` and `fairlane setup doctor`: what this machine lacks for fairlane, and how to mend it. Standard library only: it must run before any set-up.

Exit code 0 when `make demo` and `make test` can work (of an installed wheel: when the simulator and the switch can), 1 otherwise.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IS_WHEEL = not (ROOT / "Makefile").exists()
PYTHON = sys.executable if IS_WHEEL else str(ROOT / ".venv" / "bin" / "python")
MEND = "install the wheel again" if IS_WHEEL else "make setup"
MINIMUM_KERNEL = (5, 15)
MINIMUM_RUST = (1, 88)
BUILT_KERNEL = ROOT / ".setup" / "kernel"
BOOT_S = 60
BOOT_OPTIONS = (
    *("mem=64M", "root=fairlane", "rootfstype=hostfs", "hostfs=/proc/self/cwd", "rw", "init=/init"),
    *("umid=fairlane", "uml_dir=.", "con=null", "con0=null,fd:2", "time-travel=inf-cpu"),
)
"""As in switch/crates/uml/src/machine.rs, but for the calendar: alone, time passes when there is nothing else to do."""
NOTHING_TO_DO = (
    '{"start_ns": 5000000000, "end_ns": 1, "sample_ns": null, "seed": 1, "hosts": [], "lines": [], "flows": []}'
)
"""The plan of switch/crates/uml/src/plan.rs."""


@dataclass(frozen=True)
class Finding:
    """One thing looked at: `ok` True (fine), False (must be mended), or None (optional and absent)."""

    ok: bool | None
    what: str
    mend: str = ""


def output(*command: str) -> str:
    """What a command prints, on standard output or else on standard error; nothing when it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.strip() or done.stderr.strip()) if done.returncode == 0 else ""


def version_of(text: str) -> tuple[int, ...]:
    """The first dotted number in a text, as integers; empty when there is none."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found.group(1)), int(found.group(2))) if found else ()


def system() -> Finding:
    """Debian 12+ or Ubuntu 22.04+."""
    name = "unknown system"
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
        name = next((line.split("=", 1)[1].strip('"') for line in lines if line.startswith("PRETTY_NAME=")), name)
    except OSError:
        pass
    return Finding(
        shutil.which("apt-get") is not None,
        name,
        "only Debian 12+ and Ubuntu 22.04+ are set up automatically; install setup/packages.txt by hand",
    )


def kernel() -> Finding:
    """The kernel's version, for BPF congestion control."""
    release = platform.release()
    return Finding(
        version_of(release) >= MINIMUM_KERNEL,
        f"kernel {release}",
        f"BPF congestion control needs Linux {'.'.join(map(str, MINIMUM_KERNEL))} or newer",
    )


def btf() -> Finding:
    """BTF, which CO-RE needs."""
    return Finding(
        Path("/sys/kernel/btf/vmlinux").exists(),
        "kernel BTF (/sys/kernel/btf/vmlinux)",
        "boot a kernel with CONFIG_DEBUG_INFO_BTF=y (every Debian and Ubuntu kernel has it)",
    )


def cgroup2() -> Finding:
    """A cgroup v2 mount, alone or hybrid."""
    mounts = Path("/proc/mounts").read_text() if Path("/proc/mounts").exists() else ""
    return Finding(" cgroup2 " in mounts, "cgroup v2", "mount it: mount -t cgroup2 none /sys/fs/cgroup/unified")


def namespaces() -> Finding:
    """Network namespaces."""
    return Finding(Path("/proc/self/ns/net").exists(), "network namespaces", "the kernel needs CONFIG_NET_NS=y")


def root() -> Finding:
    """Root, or a way to it."""
    ok = os.geteuid() == 0 or shutil.which("sudo") is not None
    return Finding(ok, "root" if os.geteuid() == 0 else "sudo", "Mininet needs root: run as root, or install sudo")


def packages() -> Finding:
    """The apt packages of setup/packages.txt."""
    names = [line.split("#")[0].strip() for line in (ROOT / "setup" / "packages.txt").read_text().splitlines()]
    wanted = [name for name in names if name]
    missing = [name for name in wanted if "ok installed" not in output("dpkg-query", "-W", "-f=${Status}", name)]
    return Finding(
        not missing,
        f"apt packages ({len(wanted) - len(missing)} of {len(wanted)})",
        f"make setup (missing: {', '.join(missing)})",
    )


def rust() -> Finding:
    """A Rust tool chain that is new enough."""
    text = output("cargo", "--version") or output(str(Path.home() / ".cargo/bin/cargo"), "--version")
    wanted = ".".join(map(str, MINIMUM_RUST))
    return Finding(
        version_of(text) >= MINIMUM_RUST,
        text or "Rust: none",
        f"Rust {wanted} or newer: https://rustup.rs, or 'apt-get install rustup' where the system has it",
    )


def imports(*modules: str) -> bool:
    """Whether fairlane's Python has these modules."""
    return output(PYTHON, "-c", f"import {', '.join(modules)}; print('ok')") == "ok"


def environment() -> Finding:
    """The Python environment."""
    works = imports(
        "finsy", "fairlane_controller", "fairlane_hosts", "fairlane_lab", "fairlane_switch", "fairlane_topology"
    )
    works = works and (IS_WHEEL or imports("mininet.net"))
    return Finding(works, f"Python environment ({PYTHON if IS_WHEEL else '.venv'})", MEND)


def mininet() -> Finding:
    """Mininet in this Python, which only the runtime of that name needs."""
    return Finding(
        imports("mininet.net"),
        "mininet in this Python",
        "fairlane setup install",
    )


def binaries() -> Finding:
    """The binaries."""
    names = ("fairlane-switch", "fairlane-traffic")
    there = all((ROOT / "switch" / "target" / "release" / name).is_file() for name in names)
    return Finding(there, ", ".join(names), MEND)


def simulator() -> Finding:
    """The Python module of the simulator."""
    return Finding(imports("fairlane_switch.native"), "the simulator (fairlane_switch.native)", MEND)


def disk() -> Finding:
    """Room for the build, or after it for what runs write."""
    free_gib = shutil.disk_usage(ROOT).free / 2**30
    who, wanted_gib = ("runs need", 0.5) if binaries().ok else ("the build needs", 3)
    return Finding(free_gib >= wanted_gib, f"{free_gib:.1f} GiB of free disk", f"{who} {wanted_gib} GiB")


def p4c() -> Finding:
    """p4c, needed only to change the P4 programs."""
    text = output("p4c-bm2-ss", "--version")
    return Finding(
        True if text else None,
        "p4c-bm2-ss " + (version_line(text) or "(optional: only to recompile P4)"),
        "https://github.com/p4lang/p4c#installing-packaged-versions-of-p4c",
    )


def bmv2() -> Finding:
    """BMv2, needed only to compare."""
    text = output("simple_switch_grpc", "--version")
    return Finding(
        True if text else None,
        "simple_switch_grpc " + (version_line(text) or "(optional: only for TARGET=bmv2)"),
        "https://github.com/p4lang/behavioral-model#installing-packages",
    )


def version_line(text: str) -> str:
    """The first version in a text, such as `1.2.5.16`, or else its last word."""
    found = re.search(r"\d+(\.\d+)+\S*", text)
    return found[0] if found else text.split()[-1] if text else ""


def boot_failure(folder: Path) -> str:
    """Why the kernel of `--runtime kernel` in this folder does not boot and end as it should; empty: it does."""
    with tempfile.TemporaryDirectory(prefix="fairlane-boot-") as root:
        shutil.copy(folder / "guest", Path(root, "init"))
        Path(root, "plan.json").write_text(NOTHING_TO_DO)
        command = ["setpriv", "--pdeathsig", "KILL", "setarch", "x86_64", "-R", str(folder / "linux"), *BOOT_OPTIONS]
        # Its memory is a file, which not every /dev/shm can hold.
        environment = {"PATH": "/usr/bin:/bin", "TMPDIR": "."}
        console = Path(root, "console")
        try:
            with console.open("wb") as out:
                done = subprocess.run(
                    command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=BOOT_S
                )
        except OSError as error:
            return str(error)
        except subprocess.TimeoutExpired:
            return f"it has not ended after {BOOT_S} s{last_words(console)}"
        failure = Path(root, "failure")
        if failure.exists():
            return failure.read_text()
        return f"it ended with {done.returncode}{last_words(console)}" if done.returncode else ""


def last_words(console: Path) -> str:
    """The last lines of a console."""
    lines = [line.strip() for line in console.read_text(errors="replace").splitlines() if line.strip()]
    return "".join(f"\n          {line}" for line in lines[-4:])


def virtual_kernel() -> Finding:
    """The kernel of `--runtime kernel`, needed only for that."""
    if not all((BUILT_KERNEL / name).is_file() for name in ("linux", "guest")):
        return Finding(None, "the kernel of --runtime kernel (optional)", "make kernel")
    why = boot_failure(BUILT_KERNEL)
    what = f"the kernel of --runtime kernel does not boot: {why}" if why else "the kernel of --runtime kernel boots"
    return Finding(not why, what, "make kernel builds it anew when its source or this repository has changed")


CHECKS: tuple[Callable[[], Finding], ...] = (
    system,
    kernel,
    btf,
    cgroup2,
    namespaces,
    root,
    disk,
    packages,
    rust,
    environment,
    binaries,
    simulator,
    virtual_kernel,
    p4c,
    bmv2,
)
OF_A_WHEEL = (environment, binaries, simulator, kernel, btf, cgroup2, namespaces, root, mininet, p4c, bmv2)
FOR_MININET = (kernel, btf, cgroup2, namespaces, root, mininet)
"""Of a wheel's: virtual time, P4Runtime and PTF need none of these."""


def main() -> int:
    """Print a line per check; return the exit code."""
    bad = 0
    for check in OF_A_WHEEL if IS_WHEEL else CHECKS:
        found = check()
        if IS_WHEEL and check in FOR_MININET and not found.ok:
            found = Finding(None, f"{found.what} (only for --runtime mininet)", found.mend)
        mark = {True: "ok     ", False: "MISSING", None: "absent "}[found.ok]
        print(f"{mark} {found.what}" + ("" if found.ok else f"\n          -> {found.mend}"))
        bad += found.ok is False
    print("everything is there" if not bad else f"{bad} to mend; {MEND}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
