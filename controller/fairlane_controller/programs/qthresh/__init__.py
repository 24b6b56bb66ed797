# SPDX-License-Identifier: Apache-2.0
"""Qthresh: a threshold for each TCP flow, computed from the link and tuned by goodput."""

COMMANDS = {"threshold": ("cli_threshold:app", "Thresholds and schemes: show, set by hand, leave to the loop.")}
