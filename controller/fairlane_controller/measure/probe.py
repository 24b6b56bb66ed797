# SPDX-License-Identifier: Apache-2.0
"""The probe of a link as a frame (`p4src/include/control/probe.p4`), and what its times say of 2τ; no I/O, no clock.

```
 0                   1                   2                   3
 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
+ Ethernet header, EtherType 0x88B5 (IEEE 802 local experimental 1) +
|         magic 0xFA1A          |     kind      |       0       |
|                             nonce                             |
|                  departed_us (48)             |  returned_us  |
|                             (48)              |    turn_us    |
|             (32)              |           0 …  to 60 bytes    |
```
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

ETHERTYPE = 0x88B5
MAGIC = 0xFA1A
KIND_OUT, KIND_BACK = 1, 2
FRAME_BYTES = 60
"""The shortest Ethernet frame, without its FCS."""
PLACES = 8
"""Probes that a port may have outstanding: the low 3 bits of their nonces differ."""
PACKET_IN_REASON = 127
_MACS = bytes.fromhex("0180c200000e") + bytes.fromhex("020000000001")
"""To the nearest bridge (IEEE 802.1Q table 8-1): no bridge sends it on."""
_HEAD = struct.Struct("!12sHHBxI6s6sI")


@dataclass(frozen=True)
class Probe:
    """A probe as it is in a frame; times in microseconds."""

    nonce: int
    "32 bit, not 0."
    kind: int = KIND_OUT
    departed_us: int = 0
    "Start of its transmission, on the clock of the switch that measures."
    returned_us: int = 0
    "Back there, on the same clock."
    turn_us: int = 0
    "What it stayed at the other end, on that one's clock."

    def emit(self) -> bytes:
        """The frame, padded to `FRAME_BYTES`."""
        departed, returned = (time_us.to_bytes(6, "big") for time_us in (self.departed_us, self.returned_us))
        head = _HEAD.pack(_MACS, ETHERTYPE, MAGIC, self.kind, self.nonce, departed, returned, self.turn_us)
        return head.ljust(FRAME_BYTES, b"\0")

    @classmethod
    def parse(cls, frame: bytes) -> Probe | None:
        """The probe in a frame; None where there is none."""
        if len(frame) < _HEAD.size:
            return None
        _, ether_type, magic, kind, nonce, departed, returned, turn_us = _HEAD.unpack_from(frame)
        if (ether_type, magic) != (ETHERTYPE, MAGIC):
            return None
        return cls(nonce, kind, int.from_bytes(departed, "big"), int.from_bytes(returned, "big"), turn_us)

    def link_time_s(self) -> float | None:
        """Time between the two switches and on their lines, in seconds; None where its timestamps are impossible (the link has
        flipped bits)."""
        away_us = self.returned_us - self.departed_us - self.turn_us
        return away_us * 1e-6 if self.departed_us > 0 and away_us >= 0 else None
