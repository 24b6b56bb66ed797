# SPDX-License-Identifier: Apache-2.0
"""Keeps the descriptors that it inherits until standard input ends (a process descriptor: until that process does), then undoes what has ended.

`python -m fairlane_hosts.keeper` is started by a lease: for its own process, which may be killed, and for others that
are to keep what it has.
"""

from __future__ import annotations

import os
import select

from fairlane_hosts import registry

if __name__ == "__main__":
    select.select([0], [], [])
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    registry.undo_ended()
