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

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, cast

import grpc
from finsy import GRPCStatusCode
from finsy.grpcutil import grpc_channel
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import Endpoint, SwitchClient

ANSWER_TIMEOUT_S = 20.0
"""The first trace of a program compiles it."""

_SERVICE = "/fairlane.v1.Switch"

Trace = dict[str, Any]


async def trace(endpoint: Endpoint, ingress_port: int, frame: bytes) -> Trace:
    """What would happen to `frame` at `ingress_port`; nothing is sent nor changed. The module's docstring has the keys.

    Raises UNKNOWN_NAME for a port that is not there, REFUSED by a switch without this service (BMv2), NO_PIPELINE,
    SWITCH_UNREACHABLE, TLS_FAILED.
    """
    request = Struct()
    request.update({"ingress_port": ingress_port, "frame": frame.hex()})
    await _check(endpoint)
    async with _channel(endpoint) as channel:
        call = _unary(channel.unary_unary, "Trace")
        try:
            return _decode(await call(request, timeout=ANSWER_TIMEOUT_S))
        except grpc.aio.AioRpcError as ex:
            raise _translate(ex, endpoint) from None


async def trace_live(
    endpoint: Endpoint, match: Mapping[str, str | int], count: int, timeout_s: int
) -> AsyncIterator[Trace]:
    """The next `count` real packets that match, as they come; fewer when `timeout_s` is over. Raises as `trace`."""
    request = Struct()
    request.update({"match": dict(match), "count": count, "timeout_s": timeout_s})
    await _check(endpoint)
    async with _channel(endpoint) as channel:
        call = _unary(channel.unary_stream, "TraceLive")
        try:
            async for message in call(request, timeout=timeout_s + ANSWER_TIMEOUT_S):
                yield _decode(message)
        except grpc.aio.AioRpcError as ex:
            raise _translate(ex, endpoint) from None


async def _check(endpoint: Endpoint) -> None:
    """Connect as a reader first: it says in a sentence what is wrong with address, TLS or program."""
    async with SwitchClient(endpoint) as client:
        client.table_names()


def _channel(endpoint: Endpoint) -> grpc.aio.Channel:
    return grpc_channel(endpoint.grpc, credentials=endpoint.tls.credentials() if endpoint.tls else None)


def _unary(method: Callable[..., Any], name: str) -> Any:
    return method(
        f"{_SERVICE}/{name}", request_serializer=Struct.SerializeToString, response_deserializer=Struct.FromString
    )


def _decode(message: Struct) -> Trace:
    return cast("Trace", _convert_doubles(MessageToDict(message))["trace"])


def _convert_doubles(value: Any) -> Any:
    """Convert whole doubles to integers: protobuf's Struct has doubles only."""
    if isinstance(value, dict):
        return {key: _convert_doubles(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_convert_doubles(item) for item in cast("list[Any]", value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _translate(error: grpc.aio.AioRpcError, endpoint: Endpoint) -> FairlaneError:
    code = GRPCStatusCode.from_status_code(error.code())
    details = error.details() or code.name
    if code == GRPCStatusCode.UNIMPLEMENTED:
        return FairlaneError(
            ErrorCode.REFUSED,
            f"{endpoint} cannot trace packets: only the embedded switch does (BMv2 writes them to its own log: --log-console)",
        )
    if code == GRPCStatusCode.NOT_FOUND:
        return FairlaneError(ErrorCode.UNKNOWN_NAME, f"{endpoint}: {details}")
    if code == GRPCStatusCode.INVALID_ARGUMENT:
        return FairlaneError(ErrorCode.BAD_INPUT, f"{endpoint}: {details}")
    if code == GRPCStatusCode.DEADLINE_EXCEEDED:
        return FairlaneError(ErrorCode.TIMED_OUT, f"{endpoint}: no trace within {ANSWER_TIMEOUT_S:g} s")
    if code == GRPCStatusCode.UNAVAILABLE:
        return FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{endpoint} does not answer: {details}")
    return FairlaneError(ErrorCode.REFUSED, f"{endpoint}: {code.name}: {details}")
