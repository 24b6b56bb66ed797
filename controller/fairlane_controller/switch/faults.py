# SPDX-License-Identifier: Apache-2.0
"""finsy's errors in one sentence each, with a code that programs can act on."""

from __future__ import annotations

from finsy import GRPCStatusCode, P4ClientError

from fairlane_controller.errors import ErrorCode, FairlaneError

_UNREACHABLE = (GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.DEADLINE_EXCEEDED, GRPCStatusCode.CANCELLED)


def translate(error: P4ClientError, where: str) -> FairlaneError:
    """What finsy's `error` means at the switch `where` (`switch s1 at 127.0.0.1:50051`)."""
    if error.is_pipeline_missing:
        return FairlaneError(ErrorCode.NO_PIPELINE, f"{where} has no program yet: load it with `fairlane init`")
    if error.code in _UNREACHABLE:
        return FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{where} does not answer: {error.message}")
    if error.code == GRPCStatusCode.PERMISSION_DENIED:
        return FairlaneError(
            ErrorCode.NOT_PRIMARY, f"{where}: another controller is primary, so this one may not write: {error.message}"
        )
    if error.details:
        parts = [f"update {i}: {d.canonical_code.name}: {d.message}" for i, d in sorted(error.details.items())[:3]]
        more = len(error.details) - len(parts)
        if more > 0:
            parts.append(f"and {more} more")
        return FairlaneError(ErrorCode.REFUSED, f"{where} refused {len(error.details)} update(s): {'; '.join(parts)}")
    return FairlaneError(ErrorCode.REFUSED, f"{where}: {error.code.name}: {error.message}")


def failed_updates(error: P4ClientError) -> dict[int, GRPCStatusCode]:
    """Index in the batch → canonical code, for each update that failed."""
    return {index: detail.canonical_code for index, detail in error.details.items()}
