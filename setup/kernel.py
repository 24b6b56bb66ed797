#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make kernel`: the kernel of `--runtime kernel`, User-mode Linux with fairlane's senders built in, from the distribution's source.
With the argument `boot` it boots what is there, as `make kernel` does behind the build.

Under `.setup/kernel/`: `source/` and `build/` (a changed sender is compiled anew in seconds), `linux-<hash>`, and `linux` and
`linux.json`, which say which one it is. The hash is over all that the kernel is made of; what is built is not built again, also for another
clone of the same user: the last few kernels lie in `~/.cache/fairlane/` too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import doctor
from fairlane_hosts.variants import bpf_variants

ROOT = Path(__file__).resolve().parents[1]
OURS = ROOT / "hosts" / "kernel"
FOLDER = ROOT / ".setup" / "kernel"
SOURCE, BUILD = FOLDER / "source", FOLDER / "build"
PACKAGE_STAMP = SOURCE / ".fairlane-package"
MINIMUM_KERNEL = (6, 12)
"""Time travel with shared memory (include/uapi/linux/um_timetravel.h)."""
PACKAGE_NAME = re.compile(r"linux-(?:[a-z]+-)?(?:[\d.]+-)?source-(\d+)\.(\d+)(?:\.\d+)?")
PATCH, REGISTERS_PATCH = OURS / "fairlane.patch", OURS / "registers.patch"
CANNOT_BUILD = 3
"""Exit code: this machine cannot build it. 2: the build failed, or what was built does not boot."""
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairlane"
CACHED_KERNELS = 4
NOT_UNPACKED = ("*/Documentation/*.rst", "*/drivers/gpu/*.[ch]", "*/sound/*.[ch]", "*/tools/testing/*")
SAME_EVERYWHERE = {  # what a build writes into the kernel, which mixes it into its random numbers
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_USER": "fairlane",
    "KBUILD_BUILD_HOST": "fairlane",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
}
LIBBPF_HEADERS = ("bpf_core_read.h", "bpf_endian.h", "bpf_helpers.h")
REGISTER = """
static int __init fl_register(void) { return tcp_register_congestion_control(&FL_NAME); }
late_initcall(fl_register);
"""


def say(text: str) -> None:
    name = "\033[1m[kernel]\033[0m" if sys.stdout.isatty() else "[kernel]"
    print(f"{name} {text}", flush=True)


def fail(text: str, code: int = 2) -> NoReturn:
    print(f"[kernel] error: {text}", file=sys.stderr)
    sys.exit(code)


def run(*command: str | Path, log: Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    """Run a command; its output goes to `log`, and the end of it to the user when it fails."""
    with log.open("ab") as output:
        done = subprocess.run(
            [str(part) for part in command], stdout=output, stderr=output, cwd=cwd, env=env, check=False
        )
    if done.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
        fail(f"{' '.join(str(part) for part in command[:4])} failed (whole log: {log.relative_to(ROOT)}):\n{tail}")


def find_package() -> tuple[str, str]:
    """Name and version of the newest source package that apt knows, 6.12 before others, on which the patch was made."""
    if shutil.which("apt-cache") is None:
        fail("there is no apt here, whose source package of Linux it is built from", CANNOT_BUILD)
    names = subprocess.run(
        ["apt-cache", "pkgnames", "linux-"], capture_output=True, text=True, check=False
    ).stdout.split()
    found = {name: (int(m[1]), int(m[2])) for name in names if (m := PACKAGE_NAME.fullmatch(name))}
    fit = {name: version for name, version in found.items() if version >= MINIMUM_KERNEL}
    if not fit:
        there = ", ".join(sorted(found)) or "none"
        fail(
            f"apt knows no source package of Linux {MINIMUM_KERNEL[0]}.{MINIMUM_KERNEL[1]} or newer (it knows: {there}); "
            "Debian 12 has it in its security suite, Ubuntu 24.04 as a hardware-enablement kernel; `apt-get update` may help",
            CANNOT_BUILD,
        )
    name = max(fit, key=lambda name: (fit[name] == MINIMUM_KERNEL, fit[name], name))
    shown = subprocess.run(
        ["apt-cache", "show", "--no-all-versions", name], capture_output=True, text=True, check=False
    )
    version = re.search(r"^Version: (.*)$", shown.stdout, re.MULTILINE)
    if version is None:
        fail(f"apt cannot show {name}: {shown.stderr.strip()}")
    return name, version[1]


def patches_hash() -> str:
    return hashlib.sha256(PATCH.read_bytes() + REGISTERS_PATCH.read_bytes()).hexdigest()


def unpacked_package() -> str | None:
    """Name and version of the package whose source is unpacked here with these patches."""
    package, _, applied = PACKAGE_STAMP.read_text().partition("\n") if PACKAGE_STAMP.is_file() else ("", "", "")
    return package if applied == patches_hash() else None


def fetch_source(name: str, version: str) -> None:
    """Unpack and patch the source of a package, unless it is there with these patches."""
    if unpacked_package() == f"{name} {version}":
        return
    log = FOLDER / "source.log"
    log.unlink(missing_ok=True)
    partial = FOLDER / "source.partial"
    for leftover in (partial, SOURCE, BUILD):
        shutil.rmtree(leftover, ignore_errors=True)
    partial.mkdir()
    say(f"fetching {name} {version} (about 150 MB)")
    run("apt-get", "download", "-q", f"{name}={version}", log=log, cwd=partial)
    package = next(partial.glob("*.deb"))
    run("dpkg-deb", "-x", package, partial / "package", log=log)
    archives = [path for path in partial.glob("package/usr/src/**/*.tar.*") if path.is_file()]
    if len(archives) != 1:
        fail(f"{package.name} has {len(archives)} archives of sources, expected one")
    excludes = [f"--exclude={pattern}" for pattern in NOT_UNPACKED]
    run("tar", "-xf", archives[0], *excludes, log=log, cwd=partial)
    tree = next(path.parent for path in partial.glob("*/Kbuild"))
    if "um_timetravel_schedshm" not in (tree / "include/uapi/linux/um_timetravel.h").read_text():
        fail(f"{name} {version} has no time travel with shared memory (um_timetravel_schedshm)")
    has_fixed_size = "2696" in (tree / "arch/x86/um/user-offsets.c").read_text()
    for each in (PATCH, REGISTERS_PATCH) if has_fixed_size else (PATCH,):
        run("patch", "-p1", "-i", each, log=log, cwd=tree)
    with (tree / "net/ipv4/Makefile").open("a") as makefile:
        makefile.write("\nobj-y += fairlane/\n")
    (tree / PACKAGE_STAMP.name).write_text(f"{name} {version}\n{patches_hash()}")
    tree.rename(SOURCE)
    shutil.rmtree(partial)


def sender_files() -> Iterator[tuple[str, str]]:
    """Path under net/ipv4/fairlane and text of all that the senders and host programs are made of."""
    hosts = ROOT / "hosts"
    for path in sorted((hosts / "cc").glob("*.h")):
        yield f"cc/{path.name}", path.read_text()
    for path in sorted((hosts / "bpf").rglob("*.[ch]")):
        if path.name != "kernel.bpf.h":
            yield str(path.relative_to(hosts)), path.read_text()
    for path, name in (
        ("bpf/kernel.bpf.h", "kernel.bpf.h"),
        ("programs.h", "programs.h"),
        ("programs.c", "programs.c"),
        ("sink.c", "sink.c"),
        ("frames.c", "frames.c"),
    ):
        yield path, (OURS / name).read_text()
    for header in LIBBPF_HEADERS:
        yield f"include/bpf/{header}", '#include "programs.h"\n'
    yield "include/stddef.h", "#include <linux/stddef.h>\n"
    names = list[str]()
    for variant in bpf_variants():
        name = variant.congestion_control
        definitions = {"FL_NAME": name, **variant.definitions}
        if variant.folder:
            for path in sorted(variant.folder.glob("*.h")):
                yield f"{name}/{path.name}", path.read_text()
            definitions["CC_HEADER"] = f'"../{name}/{variant.header}.h"'
        lines = [f"#define {key} {value}" for key, value in definitions.items()]
        yield f"{name}.c", "\n".join([*lines, '#include "bpf/sender.bpf.c"', REGISTER])
        names.append(f"{name}.o")
    includes = "ccflags-y := -I$(src) -I$(src)/bpf -I$(src)/cc -I$(src)/include -Wno-unused"  # a header of the user's own includes "tcp.h"
    yield "Makefile", f"{includes}\nobj-y := programs.o sink.o frames.o {' '.join(names)}\n"


def write_senders() -> None:
    """Make net/ipv4/fairlane what `sender_files` says; what has not changed keeps its time."""
    folder = SOURCE / "net/ipv4/fairlane"
    files = dict(sender_files())
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if str(path.relative_to(folder)) not in files:
            path.unlink()
    for name, text in files.items():
        path = folder / name
        if not path.is_file() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def configure(environment: dict[str, str], log: Path) -> None:
    """tinyconfig, our fragment, and every congestion control of net/ipv4."""
    make = ["make", "-s", "-C", str(SOURCE), "ARCH=um", f"O={BUILD}"]
    options = re.findall(r"^config (TCP_CONG_\w+)$", (SOURCE / "net/ipv4/Kconfig").read_text(), re.MULTILINE)
    fragment = (OURS / "config").read_text() + "".join(f"CONFIG_{name}=y\n" for name in dict.fromkeys(options))
    wanted = set(re.findall(r"^CONFIG_\w+=y$", fragment, re.MULTILINE))
    run(*make, "tinyconfig", log=log, env=environment)
    with (BUILD / ".config").open("a") as config:
        config.write(fragment)
    run(*make, "olddefconfig", log=log, env=environment)
    missing = wanted - set((BUILD / ".config").read_text().splitlines())
    if missing:
        fail(f"this kernel's configuration does not take {', '.join(sorted(missing))} (hosts/kernel/config)")


def digest(package: str) -> str:
    """Of all that the kernel is made of."""
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=False).stdout.split("\n", 1)[
        0
    ]
    parts = [package, compiler, json.dumps(SAME_EVERYWHERE), *(f"{name}\0{text}" for name, text in sender_files())]
    parts += [path.read_text() for path in (OURS / "config", PATCH, REGISTERS_PATCH)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def build_kernel() -> None:
    """Build what is missing, and let `linux` and `linux.json` name it."""
    if platform.machine() != "x86_64":
        fail(f"User-mode Linux with time travel is built on x86_64; this machine is {platform.machine()}", CANNOT_BUILD)
    package = unpacked_package() or " ".join(find_package())
    tag = digest(package)
    kernel, record = FOLDER / f"linux-{tag}", FOLDER / "linux.json"
    if kernel.is_file() and record.is_file() and json.loads(record.read_text())["tag"] == tag:
        say(f"up to date: {kernel.relative_to(ROOT)} ({package})")
        return
    started = time.monotonic()
    partial, cached = FOLDER / "linux.partial", CACHE / kernel.name
    if not kernel.is_file() and cached.is_file():
        shutil.copy(cached, partial)
        partial.replace(kernel)
    if not kernel.is_file():
        fetch_source(*package.split(" ", 1))
        jobs = os.environ.get("KERNEL_JOBS") or str(len(os.sched_getaffinity(0)))
        again = (BUILD / "linux").is_file()
        say(
            f"building User-mode Linux ({package}) with {jobs} jobs: {'seconds or minutes' if again else 'three to six minutes'}"
        )
        environment = {**os.environ, **SAME_EVERYWHERE}
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
            environment.pop(name, None)
        log = FOLDER / "build.log"
        log.unlink(missing_ok=True)
        BUILD.mkdir(exist_ok=True)
        write_senders()
        configure(environment, log)
        run("make", "-s", "-C", SOURCE, "ARCH=um", f"O={BUILD}", f"-j{jobs}", "linux", log=log, env=environment)
        run("strip", "-o", partial, BUILD / "linux", log=log)
        partial.replace(kernel)
        CACHE.mkdir(parents=True, exist_ok=True)
        shutil.copy(kernel, cached)
        for old in sorted(CACHE.glob("linux-*"), key=lambda path: path.stat().st_mtime)[:-CACHED_KERNELS]:
            old.unlink()
    seconds = round(time.monotonic() - started)
    names = [variant.congestion_control for variant in bpf_variants()]
    about = {
        "tag": tag,
        "package": package,
        "sha256": hashlib.sha256(kernel.read_bytes()).hexdigest(),
        "built_in_s": seconds,
        "senders": names,
    }
    link = FOLDER / "linux.new"
    link.unlink(missing_ok=True)
    link.symlink_to(kernel.name)
    link.replace(FOLDER / "linux")
    record.write_text(json.dumps(about, indent=1) + "\n")
    for old in FOLDER.glob("linux-*"):
        if old != kernel:
            old.unlink()
    size_mb = kernel.stat().st_size / 1e6
    say(f"{kernel.relative_to(ROOT)}: {size_mb:.1f} MB, {len(names)} senders of hosts/cc, in {seconds} s")


def boot() -> int:
    """Boot what was built, once."""
    if why := doctor.boot_failure(FOLDER):
        fail(f"the kernel was built and does not boot: {why}")
    say("it boots")
    return 0


def main() -> int:
    if sys.argv[1:] == ["boot"]:
        return boot()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:  # two builds at once would share a tree
        fcntl.flock(lock, fcntl.LOCK_EX)
        build_kernel()
    return 0


if __name__ == "__main__":
    sys.exit(main())
