# SPDX-License-Identifier: Apache-2.0
"""finsy's errors in one sentence each, with a code that programs can act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from finsy import GRPCStatusCode, P4ClientError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.units import counted

_UNREACHABLE = (GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.DEADLINE_EXCEEDED, GRPCStatusCode.CANCELLED)


def translate(error: P4ClientError, where: str) -> FairlaneError:
    """What finsy's `error` means at the switch `where` (`switch s1 at 127.0.0.1:50051`)."""
    if error.details:
        return refused(refusals(error), where)
    if error.is_pipeline_missing:
        return no_pipeline(where)
    code, text = ErrorCode.REFUSED, f": {error.code.name}: {error.message}"
    if error.code in _UNREACHABLE:
        code, text = ErrorCode.SWITCH_UNREACHABLE, f" does not answer: {reason_of(error.message)}"
    elif error.code == GRPCStatusCode.PERMISSION_DENIED and error.message.startswith("Read-only"):
        text = f": this client may only read: {error.message}"
    elif error.code == GRPCStatusCode.PERMISSION_DENIED:
        code, text = ErrorCode.NOT_PRIMARY, f": this client is not the primary, so it may not write: {error.message}"
    return FairlaneError(code, where + text)


def reason_of(message: str) -> str:
    """gRPC's message; of a connection that fails only the reason, as the operating system has it."""
    is_of_connection = message.startswith(("failed to connect", "recvmsg:", "sendmsg:"))
    return message.rpartition(":")[2].strip().lower() if is_of_connection else message


def no_pipeline(where: str) -> FairlaneError:
    """NO_PIPELINE, of the switch `where`."""
    return ErrorCode.NO_PIPELINE(f"{where} has no program yet: load it with `fairlane config init`")


@dataclass(frozen=True)
class Refusal:
    """Why the switch did not take one update of a batch."""

    code: GRPCStatusCode
    message: str

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" if self.message else self.code.name


def refusals(error: P4ClientError) -> dict[int, Refusal]:
    """Index in the batch → the switch's error text, for each update that failed."""
    return {index: Refusal(detail.canonical_code, detail.message) for index, detail in error.details.items()}


def refused(found: Mapping[int, Refusal], where: str, labels: Sequence[str] = ()) -> FairlaneError:
    """REFUSED, with the first of the updates that the switch `where` did not take, by their labels or numbers."""
    parts = [f"{labels[at] if labels else f'update {at}'}: {one}" for at, one in sorted(found.items())[:3]]
    more = len(found) - len(parts)
    if more > 0:
        parts.append(f"and {more} more")
    return ErrorCode.REFUSED(f"{where} refused {counted(len(found), 'update')}: {'; '.join(parts)}")
