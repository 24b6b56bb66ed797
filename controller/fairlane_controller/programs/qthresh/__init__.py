# SPDX-License-Identifier: Apache-2.0
"""Qthresh: a threshold for each TCP flow, computed from the link and tuned by goodput."""
