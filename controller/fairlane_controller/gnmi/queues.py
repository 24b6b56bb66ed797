# SPDX-License-Identifier: Apache-2.0
"""Ports and queues for the live view (`live/view.py`): one connection that is used for every reading."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.embedded import GnmiPorts
from fairlane_controller.gnmi.ports import PortInfo
from fairlane_controller.switch.client import Endpoint


class GnmiQueues:
    """Connects at the first reading, and anew after the connection was lost."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: GnmiPorts | None = None
        self._served = True

    async def read(self) -> Iterable[PortInfo] | None:
        """All ports now; None where no gNMI is served. Raises FairlaneError when the switch does not answer."""
        if not self._served:
            return None
        client, is_new = self._client or GnmiPorts(self._endpoint), self._client is None
        try:
            if is_new:
                await client.open()
                self._client = client
            return await client.ports()
        except FairlaneError as ex:
            await self.close()
            self._served = not (is_new and ex.code is ErrorCode.REFUSED)
            if self._served:
                raise
            return None

    async def close(self) -> None:
        """End the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
