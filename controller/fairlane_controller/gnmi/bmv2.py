# SPDX-License-Identifier: Apache-2.0
"""The ports of BMv2: rate (packets/s) and depth of a queue, by `simple_switch_CLI` over Thrift; the rest is refused.

BMv2's P4Runtime server knows no queues, and its gNMI server (where it is built in at all) knows interfaces only.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from asyncio.subprocess import PIPE, STDOUT
from dataclasses import replace

from fairlane_controller.errors import ErrorCode, bad_file
from fairlane_controller.gnmi.ports import PortChange, PortInfo, PortsClient, find_port
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.shared import longest_frame_bytes
from fairlane_controller.units import format_rate

COMMAND = "simple_switch_CLI"
TIMEOUT_S = 20.0
_PORT_LINE = re.compile(r"^\s*(\d+)\s+(\S+)\s+(UP|DOWN)\b", re.MULTILINE)


class ThriftPorts(PortsClient):
    """`async with ThriftPorts(endpoint, state) as ports:`; raises FairlaneError only."""

    def __init__(self, endpoint: Endpoint, state: SwitchState) -> None:
        self.endpoint = endpoint
        self._state = state

    async def ports(self, *, queues: bool = False) -> list[PortInfo]:
        """Link states from the switch; rate and depth from the run state, since BMv2 does not report them."""
        del queues  # nothing is known of them
        known = {port.port: PortInfo(port.port, port.interface or None, rate_bps=round(port.rate_bps), scheduler="strict", queue_packets=port.queue_packets or None) for port in self._state.ports}  # fmt: skip
        for number, name, link in _PORT_LINE.findall(await self._run(["show_ports"])):
            port = known.get(int(number), PortInfo(int(number), scheduler="strict"))
            known[port.port] = replace(port, interface=name, oper_up=link == "UP")
        return [port for _, port in sorted(known.items())]

    async def set_port(self, port: int, change: PortChange, *, dry_run: bool = False) -> list[str]:
        """`set_queue_rate` and `set_queue_depth`; anything else is REFUSED, and then nothing is done."""
        for name in change.values_by_name:
            reason = "it has strict priority only" if name == "weights" else change.options[name].not_on_bmv2
            if getattr(change, name) == 0 and not reason:
                reason = "a limit that was set can be changed, but not taken away"
            if reason:
                raise ErrorCode.REFUSED(f"{self.endpoint} is a BMv2: {name.replace('_', ' ')}: {reason}")
        if self._state.port(port) is None:
            find_port(await self.ports(), port, self.endpoint)
        lines: list[str] = []
        sentences: list[str] = []
        if change.rate_bps is not None:
            length = self._frame_bytes(port)
            rate_pps = max(1, round(change.rate_bps / 8 / length))
            lines.append(f"set_queue_rate {rate_pps} {port}")
            sentences.append(
                f"{lines[0]}: {format_rate(change.rate_bps)} is {rate_pps} packets/s for frames of {length} bytes "
                "(the longest of the link); shorter frames get less"
            )
        if change.queue_packets is not None:
            lines.append(f"set_queue_depth {change.queue_packets} {port}")
            sentences.append(lines[-1])
        if lines and not dry_run:
            await self._run(lines)
        return sentences

    def _frame_bytes(self, port: int) -> int:
        """The length by which bit/s become packets/s: the longest of this link."""
        state = self._state.port(port)
        return longest_frame_bytes((state.mtu if state is not None else None) or None)

    async def _run(self, lines: list[str]) -> str:
        """The answer of the command line.

        Raises:
            FairlaneError: REFUSED with the answer, TIMED_OUT, SWITCH_UNREACHABLE, BAD_FILE without a Thrift port.
        """
        command, thrift = shutil.which(COMMAND), self._state.thrift
        if thrift is None:
            raise bad_file(f"the run state has no Thrift port of {self.endpoint} (`thrift`)")
        if command is None:
            raise ErrorCode.REFUSED(f"{COMMAND} is not on the PATH: BMv2's queues cannot be reached")
        call = (command, "--thrift-port", str(thrift))
        process = await asyncio.create_subprocess_exec(*call, stdin=PIPE, stdout=PIPE, stderr=STDOUT)
        try:
            text = "\n".join([*lines, ""]).encode()
            output, _ = await asyncio.wait_for(process.communicate(text), TIMEOUT_S)
        except asyncio.TimeoutError:
            raise ErrorCode.TIMED_OUT(f"{COMMAND} of {self.endpoint} did not answer within {TIMEOUT_S:g} s") from None
        finally:
            if process.returncode is None:  # nor does it write behind the back of one that was cancelled
                process.kill()
                await process.wait()
        answer = output.decode(errors="replace")
        if "Could not connect" in answer:
            raise ErrorCode.SWITCH_UNREACHABLE(f"{self.endpoint}: no answer at its Thrift port {thrift}")
        if process.returncode != 0 or "Error" in answer or "Invalid" in answer:
            raise ErrorCode.REFUSED(f"{self.endpoint}: {COMMAND}: {answer.strip()[-300:]}")
        return answer
