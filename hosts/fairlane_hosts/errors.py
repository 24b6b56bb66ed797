# SPDX-License-Identifier: Apache-2.0
"""The one error of this package: what was attempted, what went wrong, how to mend it."""

from __future__ import annotations


class HostsError(Exception):
    """Raised at every boundary of the package (kernel, files, network, options).

    `code` is stable and for programs (`kernel-unsupported`, `not-built`, `not-root`, `refused`, `lease`, `in-use`,
    `name-taken`, `other-build`, `unknown-variant`, `bad-sender`, `unknown-program`, `cgroup`, `sysctl`, `wrong-congestion-control`, `option`,
    `connect`, `namespace`, `check`; of a running topology `no_topology` and `bad_file`); the text may change.
    """

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(f"{message}\n  {hint}" if hint else message)
        self.code = code
        self.message = message
        self.hint = hint
