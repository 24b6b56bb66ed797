# SPDX-License-Identifier: Apache-2.0
"""The client of `fairlane.v1.Switch`: one packet's way through the pipeline, of a given frame or of the next real ones.

The service has P4Runtime's address. Its messages are `google.protobuf.Struct`, frames are hexadecimal digits:
`Trace({ingress_port, frame})`, and `TraceLive({match: {ingress_port, src, dst, protocol, sport, dport}, count, timeout_s})`,
which streams. The answer is `{trace: …}` with these keys, which `fairlane trace --json` prints:

- `time_ns`, `ingress_port`, `bytes`, `frame`: the packet.
- `rounds[]`: `why` (receive, resubmit, recirculate), `parser[]`, `parser_error`, `checksum_error`, `ingress[]`, `digests[]`,
  `log[]`, `fate` (enqueue, multicast, resubmit, drop), `to`, `drop`.
- `copies[]`: `why` (unicast, multicast, clone of ingress, clone of egress), `port`, `instance`, `queue` (`queue`,
  `waiting_packets`, `waiting_bytes`, `limit_packets`, `admits`), `egress[]`, `deparser[]`, `fate` (transmit, packet_in,
  recirculate, drop), `frame`, `drop`.
- A step of `parser`, `ingress`, `egress`, `deparser`: `step` (state, condition, table, action, deparser), `name`, `source`
  (`file`, `line`, `text`); of a state `extracted[]`, of a condition `result`, of a table `key[]`, `hit`, `entry`, `action`,
  `args[]`, `packets`; `changes[]`, `uses[]`, `lines[]`.
- A line is one statement: `op`, `source`, `changes[]` (`name`, `width`, `from`, `to`), `uses[]` (`kind`: counter, meter,
  register_read, register_write, hash, random, digest, clone, …).
- `drop`: `reason` as the switch counts it, `by` (program, queue, port), `place` (`step`, `action`, `source`).
- `left_out`: copies and rounds beyond 64.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
from finsy import GRPCStatusCode, P4ClientError
from finsy.grpcutil import grpc_channel
from google.protobuf.json_format import MessageToJson
from google.protobuf.struct_pb2 import Struct

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import CONNECT_TIMEOUT_S, HANDSHAKE_TIMEOUT_S, Endpoint
from fairlane_controller.switch.faults import translate

ANSWER_TIMEOUT_S = 20.0
"""The first trace of a program compiles it."""

_CODES = {
    GRPCStatusCode.NOT_FOUND: ErrorCode.UNKNOWN_NAME,
    GRPCStatusCode.INVALID_ARGUMENT: ErrorCode.BAD_INPUT,
    GRPCStatusCode.UNIMPLEMENTED: ErrorCode.REFUSED,
}

Trace = dict[str, Any]


def trace(endpoint: Endpoint, ingress_port: int, frame: bytes) -> AsyncIterator[Trace]:
    """What would happen to `frame` at `ingress_port`, as the only item; nothing is sent nor changed.

    The module's docstring has the keys.

    Raises:
        FairlaneError: UNKNOWN_NAME for a port that is not there, REFUSED by a switch without this service (BMv2), NO_PIPELINE,
            SWITCH_UNREACHABLE, TLS_FAILED.
    """
    return _ask(endpoint, "Trace", {"ingress_port": ingress_port, "frame": frame.hex()}, ANSWER_TIMEOUT_S)


def trace_live(endpoint: Endpoint, match: dict[str, str | int], count: int, timeout_s: int) -> AsyncIterator[Trace]:
    """The next `count` real packets that match, as they come; fewer when `timeout_s` is over. Raises as `trace`, and BAD_INPUT."""
    request = {"match": match, "count": count, "timeout_s": timeout_s}
    return _ask(endpoint, "TraceLive", request, timeout_s + ANSWER_TIMEOUT_S)


async def _ask(endpoint: Endpoint, name: str, keys: dict[str, Any], timeout_s: float) -> AsyncIterator[Trace]:
    request = Struct()
    request.update(keys)
    await endpoint.check(CONNECT_TIMEOUT_S, HANDSHAKE_TIMEOUT_S)
    credentials = endpoint.credentials
    async with grpc_channel(endpoint.grpc, credentials=credentials) as channel:
        # On the wire an answer is a stream of one.
        call: Callable[..., Any] = channel.unary_stream(
            f"/fairlane.v1.Switch/{name}",
            request_serializer=Struct.SerializeToString,
            response_deserializer=Struct.FromString,
        )
        try:
            async for message in call(request, timeout=timeout_s):
                yield json.loads(MessageToJson(message), parse_float=_number)["trace"]
        except grpc.aio.AioRpcError as ex:
            problem = P4ClientError(ex, name)
            if problem.code in _CODES:
                why = problem.message or "it cannot trace packets, as only the embedded switch does"
                raise FairlaneError(_CODES[problem.code], f"{endpoint}: {why}") from None
            raise translate(problem, str(endpoint)) from None


def _number(text: str) -> int | float:
    """A whole double as an integer: protobuf's Struct has doubles only."""
    number = float(text)
    return int(number) if number.is_integer() else number
