# SPDX-License-Identifier: Apache-2.0
"""What can be done with BMv2's ports: rate (packets/s) and depth of a queue, by `simple_switch_CLI` over Thrift; the rest is refused.

BMv2's P4Runtime server has no word for queues, and its gNMI server (where it is built in at all) knows interfaces only.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import PortChange, PortInfo, PortsClient, PortUpdate, find_port
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.shared import longest_frame_bytes
from fairlane_controller.units import format_rate

COMMAND = "simple_switch_CLI"
TIMEOUT_S = 20.0
_PORT_LINE = re.compile(r"^\s*(\d+)\s+(\S+)\s+(UP|DOWN)\b", re.MULTILINE)


class ThriftPorts(PortsClient):
    """`async with ThriftPorts(endpoint, state) as ports:`; raises FairlaneError only."""

    def __init__(self, endpoint: Endpoint, state: SwitchState, *, packet_bytes: int | None = None) -> None:
        self.endpoint = endpoint
        self._state = state
        self._packet_bytes = packet_bytes

    async def ports(self, *, queues: bool = False) -> list[PortInfo]:
        """Link states from the switch; rate and depth as the run state has them, since BMv2 does not tell them."""
        del queues  # nothing is known of them
        text = await self._say(["show_ports"])
        up = {int(number): (name, state == "UP") for number, name, state in _PORT_LINE.findall(text)}
        found: list[PortInfo] = []
        for number in sorted({*up, *(port.port for port in self._state.ports)}):
            port = self._state.port(number)
            name, is_up = up.get(number, (port.interface if port else None, None))
            found.append(
                PortInfo(
                    number,
                    name or None,
                    oper_up=is_up,
                    rate_bps=round(port.rate_bps) if port else None,
                    scheduler="strict",
                    queue_packets=(port.queue_packets or None) if port else None,
                )
            )
        return found

    async def set_port(self, port: int, change: PortChange, *, dry_run: bool = False) -> list[str]:
        """`set_queue_rate` and `set_queue_depth`; anything else is REFUSED, and then nothing is done."""
        for name in change.values_by_name:
            option = change.options.get(name)
            reason = option.not_on_bmv2 if option is not None else "it has strict priority only"
            if reason:
                raise self._refused(f"{name.replace('_', ' ')}: {reason}")
        if self._state.port(port) is None:
            find_port(await self.ports(), port, self.endpoint)
        lines, told = self.commands(port, change)
        if not dry_run and lines:
            await self._say(lines)
        return told

    def commands(self, port: int, change: PortChange) -> tuple[list[str], list[str]]:
        """Lines for the command line, and a sentence for each."""
        lines: list[str] = []
        told: list[str] = []
        if change.rate_bps is not None:
            if change.rate_bps == 0:
                raise self._refused("a rate that was set cannot be taken away, only raised")
            length, whose = self.length(port)
            rate_pps = max(1, round(change.rate_bps / 8 / length))
            lines.append(f"set_queue_rate {rate_pps} {port}")
            told.append(
                f"set_queue_rate {rate_pps} {port}: {format_rate(change.rate_bps)} is {rate_pps} packets/s for frames of "
                f"{length} bytes ({whose}); shorter frames get less, longer ones more"
            )
        if change.queue_packets is not None:
            if change.queue_packets == 0:
                raise self._refused("a queue must have a depth")
            lines.append(f"set_queue_depth {change.queue_packets} {port}")
            told.append(f"set_queue_depth {change.queue_packets} {port}")
        return lines, told

    def length(self, port: int) -> tuple[int, str]:
        """Frame length in bytes, and where it is from."""
        if self._packet_bytes is not None:
            return self._packet_bytes, "as given"
        state = self._state.port(port)
        if state is not None and state.mtu:
            return longest_frame_bytes(state.mtu), "the longest of this link; give another one by --packet-bytes"
        return longest_frame_bytes(None), "Ethernet's longest; give another one by --packet-bytes"

    async def subscribe(self, *, interval_s: float | None = None) -> AsyncIterator[PortUpdate]:
        """REFUSED: it tells nothing by itself."""
        del interval_s
        raise self._refused("it does not tell changes of its ports")
        yield  # makes this an async generator

    def _refused(self, why: str) -> FairlaneError:
        return FairlaneError(ErrorCode.REFUSED, f"{self.endpoint} is a BMv2: {why}")

    async def _say(self, lines: list[str]) -> str:
        """Raises REFUSED with the command line's own words, TIMED_OUT, and BAD_FILE where it cannot be run."""
        command, thrift = shutil.which(COMMAND), self._state.thrift
        if thrift is None:
            raise FairlaneError(
                ErrorCode.BAD_FILE, f"the run state does not say the Thrift port of {self.endpoint} (key `thrift`)"
            )
        if command is None:
            raise FairlaneError(ErrorCode.REFUSED, f"{COMMAND} is not on the PATH: BMv2's queues cannot be reached")
        process = await asyncio.create_subprocess_exec(
            command, "--thrift-port", str(thrift),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            text = "".join(f"{line}\n" for line in lines)
            output, _ = await asyncio.wait_for(process.communicate(text.encode()), TIMEOUT_S)
        except (TimeoutError, asyncio.TimeoutError):
            process.kill()
            await process.wait()
            raise FairlaneError(
                ErrorCode.TIMED_OUT, f"{COMMAND} of {self.endpoint} did not answer within {TIMEOUT_S:g} s"
            ) from None
        except asyncio.CancelledError:  # ^C: nothing of ours goes on
            process.kill()
            raise
        said = output.decode(errors="replace")
        if process.returncode != 0 and "Could not connect" in said:
            raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint}: no answer at its Thrift port {thrift}")
        if process.returncode != 0 or "Error" in said or "Invalid" in said:
            raise FairlaneError(ErrorCode.REFUSED, f"{self.endpoint}: {COMMAND}: {said.strip()[-300:]}")
        return said
