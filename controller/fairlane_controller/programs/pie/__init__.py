# SPDX-License-Identifier: Apache-2.0
"""PIE (RFC 8033): drops, or marks, with a probability that holds the queueing delay at a target."""
