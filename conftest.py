# SPDX-License-Identifier: Apache-2.0
"""Of all tests: what was skipped is said once for each reason, with the number of tests, and before the failures."""

from collections import Counter

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    for reason, tests in reasons.most_common():
        terminalreporter.write_line(f"SKIPPED [{tests}] {reason.removeprefix('Skipped: ')}")
