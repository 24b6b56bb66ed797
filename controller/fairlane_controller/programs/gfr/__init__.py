# SPDX-License-Identifier: Apache-2.0
"""GFR: minimum rates for VCs, by selective discard and weighted shares of the buffer."""
