# SPDX-License-Identifier: Apache-2.0
"""GFR: minimum rates for VCs, by discard and weighted shares of the buffer."""

COMMANDS = {"gfr": ("cli:app", "GFR: minimum rates for VCs, by discard and weighted shares of the buffer.")}
