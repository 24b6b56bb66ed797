# SPDX-License-Identifier: Apache-2.0
"""What frames take on an ATM line when only their number and bytes are known. Pure."""

from __future__ import annotations

from fairlane_controller.switch.shared import (
    AAL5_TRAILER_BYTES,
    CELL_LINE_BYTES,
    CELL_PAYLOAD_BYTES,
    ETHERNET_HEADER_BYTES,
)


def atm_line_bytes(packets: float, frame_bytes: float) -> float:
    """Bytes on the line of so many frames of together `frame_bytes`, without the padding of their last cells: exact for
    frames that fill their cells (IP packets of 40, 1000, 7720 bytes), else up to a cell a frame too little."""
    payload = frame_bytes - packets * (ETHERNET_HEADER_BYTES - AAL5_TRAILER_BYTES)
    return payload / CELL_PAYLOAD_BYTES * CELL_LINE_BYTES
