# SPDX-License-Identifier: Apache-2.0
"""The one error of this package: what was attempted, what went wrong, how to mend it."""

from __future__ import annotations

from fairlane_controller.errors import ErrorCode, FairlaneError

_CODES = {
    "unknown-variant": ErrorCode.UNKNOWN_NAME,
    "unknown-program": ErrorCode.UNKNOWN_NAME,
    "unknown-host": ErrorCode.UNKNOWN_NAME,
    "bad-sender": ErrorCode.BAD_FILE,
    "option": ErrorCode.BAD_FILE,
}
"""Of all other kinds: REFUSED, by the kernel or the machine."""


class HostsError(FairlaneError):
    """Raised at every boundary of the package (kernel, files, network, options).

    `kind` is stable and for programs (`kernel-unsupported`, `not-built`, `not-root`, `refused`, `lease`, `in-use`,
    `name-taken`, `other-build`, `unknown-variant`, `bad-sender`, `unknown-program`, `unknown-host`, `cgroup`, `sysctl`,
    `wrong-congestion-control`, `option`, `connect`, `namespace`, `check`); the text may change.
    """

    def __init__(self, kind: str, what: str, hint: str = "") -> None:
        super().__init__(_CODES.get(kind, ErrorCode.REFUSED), f"{what}\n  {hint}" if hint else what)
        self.kind = kind
        self.what = what
        self.hint = hint
