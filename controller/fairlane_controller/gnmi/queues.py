# SPDX-License-Identifier: Apache-2.0
"""Ports and queues for the live view (`live/queues.py`): one connection, asked again and again."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.embedded import GnmiPorts
from fairlane_controller.gnmi.ports import PortInfo
from fairlane_controller.switch.client import Endpoint


class GnmiQueues:
    """A `QueueSource` over gNMI; connects when it is asked, and again when the connection was lost."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: GnmiPorts | None = None
        self._served = True

    async def read(self) -> Iterable[PortInfo] | None:
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
            return await self._client.ports()
        except FairlaneError:
            await self.close()
            raise

    async def close(self) -> None:
        """End the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
