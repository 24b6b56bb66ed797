# SPDX-License-Identifier: Apache-2.0
"""The presets of links: what `"preset": "geo"` means. Sources: docs/links.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from fairlane_controller.documents import is_table

from fairlane_switch.link_series import read_series
from fairlane_switch.wire import LinkOptions

Way = Literal["a_to_b", "b_to_a"]
WAYS: tuple[Way, Way] = get_args(Way)


@dataclass(frozen=True)
class Preset:
    """A kind of link."""

    name: str
    what: str
    """One line for people."""
    link: Mapping[str, Any]
    """Values of a link by their names in the code, times in µs; those of `a_to_b` and `b_to_a` are of one direction alone, b being the user's side."""
    changes: tuple[Mapping[str, Any], ...] = ()
    """What happens to it over time, as in the topology file's `changes`, without its name."""

    def options(self, way: Way) -> LinkOptions:
        """What the wire does in a direction: all settings, its own and those that it leaves at their default."""
        values = {key: value for key, value in self.link.items() if key not in ("bandwidth_bps", *WAYS)}
        return LinkOptions(**values | self.link.get(way, {}))

    @property
    def rate_bps(self) -> int | None:
        """Of the switch ports at its ends; None: the preset says nothing of it."""
        rate: Any = self.link.get("bandwidth_bps")
        return cast(int, read_series("rate_bps", rate)) if is_table(rate) else rate


def _leo_changes() -> tuple[Mapping[str, Any], ...]:
    """Every 15 s another satellite: nothing passes for 60 ms, then the path has another length; over and over after four."""
    delays_ms = (33, 27, 35, 30)
    return tuple(
        {"at_s": 15 * number, "every_s": 60, "delay_ms": delay_ms, "outage_s": 0.06}
        for number, delay_ms in enumerate(delays_ms, start=1)
    )


def _reconfigured(loss: float) -> dict[str, Any]:
    """A loss with nothing that passes for 82.5 ms of each 15 s, when a series that is drawn every 15 s changes."""
    return {"steps": [[0, 1], [0.0825, loss]], "repeat_s": 15, "phase": "random"}


_UMTS = {"bandwidth_bps": 2_000_000, "delay_us": 60_000, "jitter_us": 10_000, "jitter_distribution": "normal"}

PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "geo",
            "a T1 line over a geostationary satellite: 290 ms one way, bit errors that error correction leaves",
            {"bandwidth_bps": 1_544_000, "delay_us": 290_000, "ber": 1e-7},
        ),
        Preset(
            "leo",
            "a low-orbit constellation: 50 Mbit/s, 27 to 35 ms one way, another satellite every 15 s",
            {
                "bandwidth_bps": 50_000_000,
                "delay_us": 30_000,
                "jitter_us": 3_000,
                "jitter_distribution": "normal",
                "loss": 0.0005,
            },
            _leo_changes(),
        ),
        Preset(
            "geo-hts",
            "a geostationary satellite of high throughput: 20 Mbit/s to the user (a to b), 2 Mbit/s back, 300 ms one way",
            {"bandwidth_bps": 20_000_000, "delay_us": 300_000, "b_to_a": {"rate_bps": 2_000_000}},
        ),
        Preset(
            "starlink",
            "a low-orbit constellation, drawn: every 15 s nothing for 82.5 ms, then another delay of 2.5 to 50 ms and rate of 50 to 100 Mbit/s to the user; 9.3 Mbit/s back",
            {
                "bandwidth_bps": {"uniform": [50e6, 100e6], "every_s": 15},
                "delay_us": {"uniform": [2.5, 50], "every_s": 15},
                "loss": _reconfigured(0.0001),
                "b_to_a": {"loss": _reconfigured(0.002), "rate_bps": 9_300_000},
            },
        ),
        Preset(
            "wifi",
            "a busy wireless LAN: 20 Mbit/s, 3 ms with jitter, bursts of 5 packets of which half are lost, one packet in 100",
            {
                "bandwidth_bps": 20_000_000,
                "delay_us": 3_000,
                "jitter_us": 2_000,
                "ge_enter": 0.004,
                "ge_leave": 0.2,
                "ge_loss": 0.5,
            },
        ),
        Preset(
            "5g",
            "5G of an Irish operator, not moving, drawn: every 6 s one of ten rates up to 229 Mbit/s, 34 ms one way",
            {
                "bandwidth_bps": {
                    "choice": [2e3, 2.1e6, 11.3e6, 17.5e6, 22.6e6, 39.4e6, 62.9e6, 99.2e6, 176.2e6, 228.8e6],
                    "every_s": 6,
                },
                "delay_us": 34_500,
                "jitter_us": 1_000,
                "jitter_distribution": "normal",
            },
        ),
        Preset("3g", "UMTS, indoors: 2 Mbit/s, 60 ms one way, jitter of retransmissions below IP", _UMTS),
        Preset(
            "handover-fast-slow",
            "UMTS whose cell changes after 10 s: all is held for 5 s, then 500 kbit/s instead of 2 Mbit/s",
            _UMTS,
            ({"at_s": 10, "spike_s": 5, "rate_bps": 500_000},),
        ),
        Preset(
            "handover-slow-fast",
            "UMTS whose cell changes after 10 s: all is held for 5 s, then 2 Mbit/s instead of 500 kbit/s",
            {**_UMTS, "bandwidth_bps": 500_000},
            ({"at_s": 10, "spike_s": 5, "rate_bps": 2_000_000},),
        ),
    )
}
