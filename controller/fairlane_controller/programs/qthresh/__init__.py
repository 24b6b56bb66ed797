# SPDX-License-Identifier: Apache-2.0
"""Qthresh: a threshold for each TCP flow, computed from the link and tuned by goodput."""

COMMANDS = {
    "threshold": ("cli_threshold:threshold_app", "Thresholds: show, set by hand, or leave to the loop."),
    "scheme": ("cli_scheme:scheme_app", "Queue scheme of (egress port, class): drop_tail or qthresh."),
    "plan": ("cli_plan:plan_command", "A threshold on paper: equations (5) to (9), no switch needed."),
}
