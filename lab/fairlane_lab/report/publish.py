# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""The pages of docs/results: the claims of the papers, our own hypotheses, and a page for each experiment with archived runs. Everything on them comes from the archive and the experiments' files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from fairlane_hosts.variants import VARIANTS
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from fairlane_lab.definition import Definition, Selection, expand, experiment_names
from fairlane_lab.definition.draws import draws_of
from fairlane_lab.definition.names import RUNTIMES
from fairlane_lab.paths import RESULTS_DATA
from fairlane_lab.report import labels
from fairlane_lab.report.archive import archived_definitions, archived_runtimes, digest, is_stale, open_archived
from fairlane_lab.report.claims import Judged, claim_rows, judged_bounds
from fairlane_lab.report.page import Section, make_section, runtime_label
from fairlane_lab.report.pairing import Pair
from fairlane_lab.report.run_folder import RunFolder
from fairlane_lab.report.style import RC

PLOTS = "plots"
DATA = RESULTS_DATA.name


@dataclass(frozen=True)
class TableRow:
    """One source of numbers of a point."""

    point: str
    """Empty below the first row of a point."""
    source: str
    runs: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """What the template of an experiment's page gets."""

    section: Section
    definition: Definition
    rows: tuple[TableRow, ...]
    heads: tuple[str, ...]
    is_not: tuple[tuple[str, str], ...]
    """Sender → what it is not."""
    stale: tuple[str, ...]
    """Runtimes that were measured before the experiment's file changed."""
    is_known: bool
    """Whether that file is one of lab/experiments."""

    @property
    def name(self) -> str:
        """The experiment's."""
        return self.definition.experiment.name

    @property
    def drawn(self) -> str:
        """What differs from run to run."""
        return draws_of(self.definition.document).text()

    @property
    def runs(self) -> Sequence[RunFolder]:
        """The archived runs, sim first."""
        return self.section.pair.runs

    def judged(self) -> Iterator[Judged]:
        """Every bound in every runtime in which it is asked."""
        return judged_bounds(self.section.pair, self.section.verdicts, self.definition.experiment.expect)

    def sentences(self) -> list[list[Judged]]:
        """The bounds of each sentence in each runtime."""
        return group_by_sentence(self.judged())

    def count(self, state: str, runtime: str | None = None) -> int:
        """Bounds with a state (in a runtime)."""
        return sum(each.outcome.state == state and runtime in (None, each.runtime) for each in self.judged())


def group_by_sentence(judged: Iterable[Judged]) -> list[list[Judged]]:
    """What one sentence asks in one runtime together, in the order of its points."""
    found: dict[tuple[str, str, str, str], list[Judged]] = {}
    for each in judged:
        found.setdefault((each.experiment, each.asked.text, each.asked.bound, each.runtime), []).append(each)
    return list(found.values())


def make_pages(
    results: Path, show_progress: Callable[[str], None] = lambda _name: None, draws: bool = True
) -> dict[str, str]:
    """Every page's text by its file's name, from the archive in `results`/data; `draws` the pictures that are not there yet or of older data.

    Raises RunFolderError for a damaged archive, ExperimentError for an experiment's file with errors.
    """
    pages: list[Page] = []
    for definition in archived_definitions(results / DATA):
        show_progress(definition.experiment.name)
        pages.append(_page(definition, results, draws))
    environment = _environment()
    texts = {f"{page.name}.md": environment.get_template("experiment.md.j2").render(page=page) for page in pages}
    judged = [each for page in pages for each in page.judged()]
    claims = claim_rows(judged)
    states = dict.fromkeys(["met", "not met", *(each.state for row in claims for each in row.answers.values())])
    index = environment.get_template("claims.md.j2").render(
        claims=claims, states=states, runtimes=RUNTIMES, pages=pages, measured={page.name for page in pages}
    )
    ours = [each for each in judged if not each.claim]
    hypotheses = environment.get_template("hypotheses.md.j2").render(judged=ours)
    return {"index.md": index, "hypotheses.md": hypotheses, **texts}


def write_pages(results: Path, show_progress: Callable[[str], None] = lambda _name: None) -> list[Path]:
    """Write every page into `results`, and remove pages and pictures that nothing is archived for. Returns the pages."""
    pages = make_pages(results, show_progress)
    for name, text in pages.items():
        (results / name).write_text(text, encoding="utf-8")
    for older in results.glob("*.md"):
        if older.name not in pages:
            older.unlink()
    for picture in (results / PLOTS).glob("*.svg"):
        if not any(f"{PLOTS}/{picture.name}" in text for text in pages.values()):
            picture.unlink()
    return [results / name for name in pages]


def find_differing_pages(results: Path, show_progress: Callable[[str], None] = lambda _name: None) -> list[str]:
    """Names of the pages and pictures that are not what the archive says; nothing is drawn or written."""
    pages = make_pages(results, show_progress, draws=False)
    there = {path.name: path.read_text(encoding="utf-8") for path in results.glob("*.md")}
    differing = [name for name in sorted({*pages, *there}) if pages.get(name) != there.get(name)]
    for name, text in pages.items():
        of = digest(results / DATA, name.removesuffix(".md"))
        links: list[str] = re.findall(rf"\]\(({PLOTS}/[^)]+)\)", text)
        differing += [link for link in links if picture_digest(results / link) != of]
    return differing


def picture_digest(path: Path) -> str:
    """Of the data that a picture was drawn from; empty when it does not say, or is not there."""
    if not path.exists():
        return ""
    _, found, rest = path.read_text(encoding="utf-8").partition("data ")
    return rest[:16] if found else ""


def _page(definition: Definition, results: Path, draws: bool) -> Page:
    data, name = results / DATA, definition.experiment.name
    runs = [run for runtime in archived_runtimes(data, name) if (run := open_archived(data, definition, runtime))]
    pair = Pair(tuple(runs))
    section = make_section(pair, partial(_figure_file, results, name, digest(data, name) if draws else ""))
    heads, rows = _table(section)
    known = name in experiment_names()  # of another the file as it is now is not known
    stale = [run.runtime for run in runs if known and is_stale(data, definition, run)]
    return Page(section, definition, rows, heads, _is_not(definition, runs), tuple(stale), known)


def _figure_file(results: Path, experiment: str, of: str, name: str, title: str, make: Callable[[], Figure]) -> Markup:
    """A link to a figure's file, which is drawn where it is not of the data `of`; with an empty one, never."""
    path = results / PLOTS / f"{experiment}-{name}.svg"
    if of and picture_digest(path) != of:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure = make()
        with plt.rc_context({**RC, "svg.hashsalt": f"{experiment}-{name}"}):
            figure.savefig(path, facecolor="white", metadata={"Date": None, "Description": f"data {of}"})
        plt.close(figure)
    return Markup(f"![{title}]({PLOTS}/{path.name})")


def _table(section: Section) -> tuple[tuple[str, ...], tuple[TableRow, ...]]:
    """The table of paper and runtimes with a row for each source of a point: heads of the metrics, rows."""
    columns = section.table.columns
    heads = tuple(f"{column.label} ({column.unit})" if column.unit else column.label for column in columns)
    rows: list[TableRow] = []
    labelled = {source: head for column in columns for source, head in zip(column.sources, column.heads, strict=True)}
    counts = {run.runtime: {point.name: str(_runs_of(point.metrics)) for point in run.points} for run in section.pair.runs}  # fmt: skip
    for row in section.table.rows:
        cells: dict[str, dict[int, str]] = {}
        found = iter(row.cells)
        for place, column in enumerate(columns):
            for source in column.sources:
                cell = next(found)
                if cell.text:
                    text = f"{cell.text} ({cell.spread.replace('..', ' to ')})" if cell.spread else cell.text
                    cells.setdefault(source, {})[place] = text
        shown = row.point
        for source in (source for source in labelled if source in cells):
            numbers = tuple(cells[source].get(place, "") for place in range(len(columns)))
            rows.append(TableRow(shown, labelled[source], counts.get(source, {}).get(row.point, ""), numbers))
            shown = ""
    return heads, tuple(rows)


def _runs_of(metrics: Mapping[str, Any]) -> int:
    return max((spread.runs for spread in metrics.values()), default=0)


def _is_not(definition: Definition, runs: Sequence[RunFolder]) -> tuple[tuple[str, str], ...]:
    """What the experiment's senders are not, in the runtimes that were measured."""
    used: dict[str, None] = {}
    for run in runs:
        scenarios = expand(definition, Selection(runtime=run.summary["runtime"], repeats=1))
        used |= dict.fromkeys(flow.variant for scenario in scenarios for flow in scenario.flows)
    return tuple((name, VARIANTS[name].is_not) for name in used if name in VARIANTS and VARIANTS[name].is_not)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fairlane_lab.report", "templates"),
        autoescape=False,  # Markdown
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    filters: dict[str, Any] = {
        "runtime": runtime_label,
        "cell": _cell,
        "words": _words,
        "sentences": group_by_sentence,
        "number": labels.number,
    }
    environment.filters.update(filters)
    return environment


def _words(text: object) -> str:
    """A text on one line."""
    return " ".join(str(text).split())


def _cell(text: object) -> str:
    """A text that may stand in a cell of a Markdown table."""
    return _words(text).replace("|", "\\|").replace("<", "&lt;")
