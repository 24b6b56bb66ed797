# SPDX-License-Identifier: Apache-2.0
"""`make kernel`: what is missing is said before it builds anything; registers are restored on every CPU; what was built boots."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import kernel
import pytest


@pytest.fixture(autouse=True)
def nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["kernel.py"])
    monkeypatch.setattr(kernel, "FOLDER", tmp_path)
    monkeypatch.setattr(kernel, "PACKAGE_STAMP", tmp_path / "none")


def apt_knows(monkeypatch: pytest.MonkeyPatch, packages: str) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        shown = "Version: 6.12.9-1\n" if command[1] == "show" else packages
        return subprocess.CompletedProcess(command, 0, shown, "")

    monkeypatch.setattr(subprocess, "run", run)


def test_another_architecture(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kernel.platform, "machine", lambda: "aarch64")
    with pytest.raises(SystemExit, match=str(kernel.CANNOT_BUILD)):
        kernel.main()
    assert "is built on x86_64; this machine is aarch64" in capsys.readouterr().err


def test_only_old_sources(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    apt_knows(monkeypatch, "linux-source-6.1\nlinux-libc-dev\n")
    with pytest.raises(SystemExit, match=str(kernel.CANNOT_BUILD)):
        kernel.main()
    assert "no source package of Linux 6.12 or newer (it knows: linux-source-6.1)" in capsys.readouterr().err


def test_no_apt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match=str(kernel.CANNOT_BUILD)):
        kernel.main()
    assert "there is no apt here" in capsys.readouterr().err


def test_the_patch_s_own_version_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    apt_knows(monkeypatch, "linux-source-6.1\nlinux-hwe-6.17-source-6.17.0\nlinux-source-6.12\n")
    assert kernel.find_package() == ("linux-source-6.12", "6.12.9-1")
    apt_knows(monkeypatch, "linux-hwe-6.14-source-6.14.0\nlinux-source-6.8.0\nlinux-hwe-6.17-source-6.17.0\n")
    assert kernel.find_package()[0] == "linux-hwe-6.17-source-6.17.0"


def test_a_kernel_that_another_clone_built_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt_knows(monkeypatch, "linux-source-6.12\n")
    monkeypatch.setattr(kernel, "ROOT", tmp_path)
    monkeypatch.setattr(kernel.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(kernel, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(kernel, "fetch_source", lambda *_: pytest.fail("fetched"))
    kernel.CACHE.mkdir()
    (kernel.CACHE / f"linux-{kernel.digest('linux-source-6.12 6.12.9-1')}").write_text("built")
    assert kernel.main() == 0
    assert (tmp_path / "linux").read_text() == "built"


HARNESS = r"""
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#define NT_X86_XSTATE 0x202
#define FP_SIZE (2696 / sizeof(unsigned long)) /* arch/x86/um/user-offsets.c */
static int have_xstate_support = 1;
static int restore_i387_registers(int pid, unsigned long *fp_regs) { return -ENOSYS; }

#ifdef AREA
static unsigned char cpu[AREA];

/* As Linux: ptrace_regset() in kernel/ptrace.c cuts to the area, xstateregs_set() in arch/x86/kernel/fpu/regset.c takes it whole. */
static long set_registers(int request, int pid, int type, struct iovec *iov)
{
	size_t len = iov->iov_len < AREA ? iov->iov_len : AREA;

	if (len != AREA) {
		errno = EFAULT;
		return -1;
	}
	memcpy(cpu, iov->iov_base, len);
	return 0;
}
#define ptrace set_registers
#endif
#define PTRACE_SETREGSET PTRACE_SETREGSET
@FUNCTION@

int main(void)
{
	static unsigned char saved[2696];
	unsigned i;
#ifdef AREA
	for (i = 0; i < sizeof(saved); i++)
		saved[i] = i % 251 + 1;
	memset(cpu, 255, sizeof(cpu));
	printf("%d ", restore_fp_registers(1, (void *)saved));
	for (i = 0; i < sizeof(cpu) && cpu[i] == (i < sizeof(saved) ? saved[i] : 0);)
		i++;
	printf("%u\n", i);
#else
	static unsigned char area[65536];
	struct iovec iov = {saved, sizeof(saved)}, all = {area, sizeof(area)};
	int pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, 0, 0);
	if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov))
		return 1;
	saved[512] |= 3; /* XSTATE_BV: x87 and SSE are in use */
	memset(saved + 160, 0x5a, 16); /* xmm0 */
	i = restore_fp_registers(pid, (void *)saved);
	ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &all);
	printf("%d %d\n", (int)i, memcmp(area + 160, saved + 160, 16));
	kill(pid, SIGKILL);
#endif
	return 0;
}
"""


def restore_function(signs: str) -> str:
    """`restore_fp_registers` of the patch's hunk: with the lines of these signs, and the end that every version has."""
    hunk = kernel.REGISTERS_PATCH.read_text().split("@@")[-1]
    lines = [line[1:] for line in hunk.splitlines()[1:] if line[:1] in signs]
    begin = next(index for index, line in enumerate(lines) if line.startswith("int restore_fp_registers"))
    return "\n".join([*lines[begin:], "\t} else", "#endif", "\t\treturn restore_i387_registers(pid, fp_regs);", "}"])


def restore(folder: Path, signs: str, *options: str) -> str:
    """What the harness prints: the function's result, and what of the registers is right."""
    (folder / "restore.c").write_text(HARNESS.replace("@FUNCTION@", restore_function(signs)))
    subprocess.run(["gcc", "-O1", *options, "-o", "restore", "restore.c"], cwd=folder, check=True, timeout=60)
    return subprocess.run([folder / "restore"], check=True, capture_output=True, text=True, timeout=20).stdout.strip()


@pytest.mark.parametrize("area", [832, 2440, 2696, 11008])
def test_registers_are_restored_whatever_the_cpu_s_area_is(area: int, tmp_path: Path) -> None:
    assert restore(tmp_path, " +", f"-DAREA={area}") == f"0 {area}"


def test_without_the_patch_a_cpu_with_amx_refuses(tmp_path: Path) -> None:
    assert restore(tmp_path, " -", "-DAREA=11008") == "-14 0"
    assert restore(tmp_path, " -", "-DAREA=2696") == "0 2696"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="User-mode Linux is built on x86_64")
def test_registers_are_restored_on_this_cpu(tmp_path: Path) -> None:
    assert restore(tmp_path, " +") == "0 0"
