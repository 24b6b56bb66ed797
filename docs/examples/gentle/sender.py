# SPDX-License-Identifier: Apache-2.0
"""The sender's row of the table of senders: what it is called, and how its host is set."""

from fairlane_hosts.variants import MODERN_SYSCTLS, Variant

SENDER = Variant(
    name="gentle",
    header="gentle",
    paper="none: an example",
    is_not="made for real networks: it takes more than its share beside Reno",
    defines={"FL_INITIAL_WINDOW": 10},  # RFC 6928
    sysctls=MODERN_SYSCTLS,  # SACK, timestamps, F-RTO as Linux has them today
)
