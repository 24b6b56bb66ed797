# SPDX-License-Identifier: Apache-2.0
"""GFR: minimum rates for VCs, by discard and weighted shares of the buffer."""

COMMANDS = {"vc": ("cli_vc:vc_app", "VCs with minimum rates: add, change, remove, list.")}
