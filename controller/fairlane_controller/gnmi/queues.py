# SPDX-License-Identifier: Apache-2.0
"""Ports and queues for the live view (`live/queues.py`): one connection, asked again and again."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.embedded import GnmiPorts
from fairlane_controller.gnmi.ports import PortInfo
from fairlane_controller.live.queues import PortQueues
from fairlane_controller.switch.client import Endpoint

_LINK = ("port_down",)
"""Refusals that are the link's, not a queue's."""


class GnmiQueues:
    """A `QueueSource` over gNMI; connects when it is asked, and again when the connection was lost."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: GnmiPorts | None = None
        self._served = True

    async def read(self) -> Iterable[PortQueues] | None:
        """All ports now; None where no gNMI is served. Raises FairlaneError when the switch does not answer."""
        if not self._served:
            return None
        if self._client is None:
            client = GnmiPorts(self._endpoint)
            try:
                await client.open()
            except FairlaneError as ex:
                if ex.code is ErrorCode.REFUSED:
                    self._served = False
                    return None
                raise
            self._client = client
        try:
            ports = await self._client.ports()
        except FairlaneError:
            await self.close()
            raise
        return [_queues_of(port) for port in ports]

    async def close(self) -> None:
        """End the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def queue_source_of(endpoint: Endpoint) -> GnmiQueues:
    """For `LiveSource(queues=queue_source_of)` on the embedded switch."""
    return GnmiQueues(endpoint)


def _queues_of(port: PortInfo) -> PortQueues:
    by_link = {reason: packets for reason, packets in port.drops.items() if reason in _LINK}
    if port.send_errors:
        by_link["transmit_failed"] = port.send_errors
    return PortQueues(
        port.port,
        port.interface,
        port.rate_bps,
        port.queue_packets,
        port.waiting_packets,
        port.waiting_bytes,
        port.sent_packets,
        port.sent_bytes,
        {reason: packets for reason, packets in port.drops.items() if reason not in _LINK},
        by_link,
    )
