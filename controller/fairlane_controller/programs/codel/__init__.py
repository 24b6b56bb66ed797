# SPDX-License-Identifier: Apache-2.0
"""CoDel (RFC 8289): drops, or marks, what has waited longer than a target for an interval."""
