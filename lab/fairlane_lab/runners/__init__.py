# SPDX-License-Identifier: Apache-2.0
"""Runners: each takes one `Scenario` and returns its `RunResult`; `sim` in virtual time, `mininet` with real TCP."""
