# SPDX-License-Identifier: Apache-2.0
"""The documentation site: it builds without a warning, holds every page, and loads nothing from elsewhere; its numbers are those of docs/results."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a broken link or anchor, and a page outside the navigation, fail it."""
    pytest.importorskip("mkdocs", reason="MkDocs is not installed: make docs installs it")
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed: make docs installs it")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_site_and_in_its_navigation(site: Path) -> None:
    frame = (site / "index.html").read_text(encoding="utf-8")
    for page in sorted(DOCS.rglob("*.md")):
        place = page.relative_to(DOCS)
        html = place.with_name("index.html") if place.name == "README.md" else place.with_suffix(".html")
        assert (site / html).is_file(), place
        if place.parent != Path("results"):  # a pattern; sections other than the open one show their first page only
            assert place.as_posix() in (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), place
    assert "Comparison" in frame


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    loads = re.compile(
        r"<(?:script|img|iframe)[^>]+src=\"?(https?:[^\s\">]+)|<link[^>]+rel=\"?stylesheet[^>]+href=\"?(https?:[^\s\">]+)"
    )
    for page in site.rglob("*.html"):
        assert not loads.findall(page.read_text(encoding="utf-8")), page.relative_to(site)


def test_equations_are_made_when_the_site_is_built(site: Path) -> None:
    for page in sorted((DOCS / "concepts").glob("*.md")):
        html = (site / "concepts" / page.with_suffix(".html").name).read_text(encoding="utf-8")
        assert "arithmatex" not in html
        assert ("<math" in html) == ("$$" in page.read_text(encoding="utf-8")), page.name


def test_the_reference_is_made_from_the_code(site: Path) -> None:
    for name, words in {
        "commands": ("fairlane config apply", "--dry-run"),
        "settings": ("bytes_per_round", "calendar_queues"),
        "links": ("errors_in", "ge_leave"),
        "metrics": ("fairlane_up", "fairlane_flow_queue_packets"),
        "api": ("run_experiment", "Network.snapshot"),
        "yang": ("fairlane-port", "queue-cells"),
        "p4": ("set_port_limit", "port_report_t", "vc_verdicts"),
        "experiments": ("warmup_s", "fair_after_s", "errors_in"),
        "senders": ("fl_bcr_p", "RFC 9438", "prague"),
        "gnmi": ("counters/in-pkts", "forwarding-viable", "max-queue-depth-packets", "packets/{}/on-line"),
    }.items():
        html = (site / "reference" / f"{name}.html").read_text(encoding="utf-8")
        assert all(word in html for word in words), name


def cited() -> Iterator[tuple[str, str, str]]:
    """(page, experiment, number) of each number that a page on a paper cites from docs/results."""
    for page in sorted((DOCS / "concepts").glob("*.md")):
        heads: list[str] = []
        for line in page.read_text(encoding="utf-8").splitlines():
            if not line.startswith("|"):
                heads = []
                continue
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            heads = heads or cells
            source = re.search(r"\(\.\./results/[\w-]+\.md#([\w-]+)\)", line)
            for head, cell in zip(heads, cells, strict=True):
                if source and cell and head in ("sim", "kernel", "Mininet"):
                    yield page.name, source[1], cell


def test_cited_numbers_are_those_of_the_results() -> None:
    found = list(cited())
    assert len(found) > 10
    for page, name, number in found:
        tables = [DOCS / "results" / "tables" / f"{name}.{kind}.csv" for kind in ("numbers", "bounds")]
        text = "\n".join(path.read_text(encoding="utf-8") for path in tables)
        assert re.search(rf"[(,\"] ?{re.escape(number)}[ (,\"\n]", text), f"{page} cites {number}, which {name} has not"


def test_the_numbers_of_the_readme_are_those_of_the_demo() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    before, after = re.findall(r"([\d.]+) kbit/s", readme)
    low, high = re.findall(r"from (\d+) to (\d+) % of the line", readme)[0]
    assert [low, high] == [f"{float(kbps) / 2000:.0%}".rstrip("%") for kbps in (before, after)]
    with (DOCS / "results" / "tables" / "demo.numbers.csv").open(encoding="utf-8") as file:
        rows = {(row["point"], row["in"]): row["goodput, vegas (kbit/s)"] for row in csv.DictReader(file)}
    for point, number in (("2M-2ms/drop-tail", before), ("2M-2ms/auto", after)):
        assert rows[point, "Mininet"].startswith(f"{number} (")


def test_papers_are_named_as_papers() -> None:
    """By their short name, with authors, title, venue and year in docs/concepts; never by a number alone.

    Not in topologies: their description is part of what makes an archived run the same, and changes when they are measured again.
    """
    number = re.compile(r"\b[Pp]apers? 00[0-4]\b|[\"(]00[0-4](?: \(|[\"),])|\b00[0-4], 00[0-4]\b")
    folders = ("docs", "lab", "controller", "hosts", "mininet", "p4src", "ptf_tests", "switch/crates", "bench", "setup")
    suffixes = {".md", ".toml", ".py", ".j2", ".json", ".p4", ".h", ".c", ".rs", ".svg"}
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if (
                path.suffix in suffixes
                and path != Path(__file__)
                and not {"build", "target", "data", "topologies"} & set(path.parts)
            ):
                assert not number.search(path.read_text(encoding="utf-8", errors="replace")), path.relative_to(ROOT)
