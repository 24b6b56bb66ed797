# SPDX-License-Identifier: Apache-2.0
"""The papers' own numbers, beside which every result is set.

Paper 000 (Chae, Choi: a new queueing algorithm for improving fairness between TCP flows), Tables 1 and 2.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class PaperLink:
    """A bottleneck link of paper 000 and what the paper measured on it; rates in kbit/s, fairness = min/max."""

    link: str
    rate_bps: int
    delay_ms: float
    """One-way propagation delay τ (the tables say 5 ms at 512 kbit/s, the text 3 ms: the tables are followed)."""
    drop_tail_reno_kbps: float
    drop_tail_vegas_kbps: float
    qthresh: int
    qthresh_reno_kbps: float
    qthresh_vegas_kbps: float

    def rows(self) -> list[dict[str, Any]]:
        """The paper's rows of this link in the result's own columns."""
        values = asdict(self)
        rows: list[dict[str, Any]] = []
        for scheme in ("drop_tail", "qthresh"):
            reno, vegas = values[f"{scheme}_reno_kbps"], values[f"{scheme}_vegas_kbps"]
            rows.append(
                {
                    "link": self.link,
                    "rate_bps": self.rate_bps,
                    "delay_ms": self.delay_ms,
                    "scheme": scheme,
                    "qthresh": self.qthresh if scheme == "qthresh" else None,
                    "reno_kbps": reno,
                    "vegas_kbps": vegas,
                    "utilisation": round((reno + vegas) * 1e3 / self.rate_bps, 4),
                    "fairness": round(min(reno, vegas) / max(reno, vegas), 4),
                }
            )
        return rows


LINKS: tuple[PaperLink, ...] = (
    PaperLink("512k-5ms", 512_000, 5, 457.16, 54.84, 4, 244.8, 267.2),
    PaperLink("1.5M-2ms", 1_500_000, 2, 1348.18, 151.82, 5, 772.89, 727.1),
    PaperLink("2M-2ms", 2_000_000, 2, 1797.69, 202.31, 6, 936.98, 1063.02),
    PaperLink("5M-2ms", 5_000_000, 2, 4528.53, 471.47, 6, 2454.58, 2545.42),
)
"""Tables 1 (drop-tail) and 2 (Qthresh), in the paper's order."""


def paper_rows() -> list[dict[str, Any]]:
    """All rows of Tables 1 and 2 in the result's own columns."""
    return [row for link in LINKS for row in link.rows()]
