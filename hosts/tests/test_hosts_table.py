# SPDX-License-Identifier: Apache-2.0
"""A sender is a header and a row: the table and the headers fit, and a new sender needs nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cc_library import make_tcp
from cc_sender import Sender, compile_sender
from fairlane_hosts import build
from fairlane_hosts.simulator import SIMULATOR_VARIANTS, congestion_control, simulated
from fairlane_hosts.variants import MODERN_SYSCTLS, VARIANTS, Variant

HEADERS = build.ROOT / "cc"
TOY = """
// Grows by two packets for each one acknowledged.
#ifndef FAIRLANE_CC_TOY_H
#define FAIRLANE_CC_TOY_H
#include "reno.h"

struct toy { cc_u32 acks; };

CC_INLINE void toy_cong_avoid(struct toy *st, struct cc_tcp *tcp, cc_u32 acked) {
	st->acks++;
	tcp->snd_cwnd += 2 * acked;
}

#ifdef CC_SENDER_toy
#define CC_STATE struct toy
#define CC_CONG_AVOID(st, tcp, acked) toy_cong_avoid(st, tcp, acked)
#endif
#endif
"""
ROW = Variant(name="toy", header="toy", paper="none", is_not="a sender", sysctls=MODERN_SYSCTLS)


def senders() -> set[str]:
    return {path.stem for path in HEADERS.glob("*.h") if f"\n#ifdef CC_SENDER_{path.stem}\n" in path.read_text()}


def test_the_table_and_the_headers_fit() -> None:
    simulated_only = {congestion_control(name) for name in SIMULATOR_VARIANTS}
    ours = {name: variant for name, variant in VARIANTS.items() if variant.folder is None}
    assert {variant.header for variant in ours.values()} | simulated_only == senders()
    with_ena = {f"ena_{header}{plus}" for header in senders() for plus in ("", "_plus")}  # crates/tcp/build.rs
    assert {congestion_control(name) for name in ours} | simulated_only <= senders() | with_ena


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with one header more."""
    for name in ("cc", "bpf"):
        shutil.copytree(build.ROOT / name, tmp_path / name)
    (tmp_path / "cc/toy.h").write_text(TOY)
    monkeypatch.setattr(build, "ROOT", tmp_path)
    return tmp_path


def test_a_header_and_a_row_are_a_sender_in_the_simulator(folder: Path) -> None:
    sender = Sender(compile_sender("toy", folder, folder / "cc"), "toy", make_tcp(10))
    sender.cong_avoid(3)
    assert (sender.tcp.snd_cwnd, sender.ssthresh()) == (16, 8), "its growth, and Reno's half, which it leaves out"
    tcp = simulated(ROW)
    assert (tcp["cc"], tcp["recovery"], tcp["rack"], tcp["frto"]) == ("toy", "sack", True, True)


@pytest.mark.kernel
def test_a_header_and_a_row_are_a_sender_in_bpf(folder: Path) -> None:
    build.compile_bpf(build.SENDER_SOURCE, ROW.congestion_control, ROW.definitions, folder / "toy.o")
    assert b"fl_toy" in (folder / "toy.o").read_bytes()


def test_a_header_without_hooks_is_no_sender(folder: Path) -> None:
    (folder / "cc/toy.h").write_text(TOY.replace("CC_SENDER_toy", "CC_SENDER_tow"))
    with pytest.raises(AssertionError, match="this header is no sender: it has no `#ifdef CC_SENDER_<its name>`"):
        compile_sender("toy", folder, folder / "cc")
