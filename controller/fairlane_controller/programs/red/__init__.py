# SPDX-License-Identifier: Apache-2.0
"""RED (RFC 2309): drops, or marks (RFC 3168), with a probability that grows with the average queue."""
