# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Pages in Markdown, one an experiment: those of docs/results from the archive, with the claims of the papers and our own hypotheses, and those of run folders."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from fairlane_hosts.variants import VARIANTS
from jinja2 import Environment, PackageLoader, StrictUndefined

from fairlane_lab.definition import Definition, ExperimentError, Selection, expand, experiment_names, load
from fairlane_lab.definition.draws import draws_of
from fairlane_lab.definition.names import RUNTIMES
from fairlane_lab.definition.plots import Plot
from fairlane_lab.paths import RESULTS_DATA, digest_files
from fairlane_lab.report import labels
from fairlane_lab.report.archive import (
    archived_definitions,
    archived_runtimes,
    definition_as_run,
    digest,
    is_stale,
    open_archived,
)
from fairlane_lab.report.claims import Judged, claim_rows, judged_bounds
from fairlane_lab.report.differences import Difference, Line, find_differences
from fairlane_lab.report.pairing import NotesOf, Pair, pair_up
from fairlane_lab.report.pictures import draw
from fairlane_lab.report.run_folder import RunFolder
from fairlane_lab.report.side_by_side import Table, shown_metrics, side_by_side
from fairlane_lab.report.style import RC, mark
from fairlane_lab.report.verdict_table import verdict_table
from fairlane_lab.results.summary_file import RunFolderError

PLOTS = "plots"
DATA = RESULTS_DATA.name


@dataclass(frozen=True)
class DifferenceLine:
    """A line on differences, as text."""

    what: str
    """`fairness: sim against the paper`."""
    points: tuple[str, ...]
    """`512k-5ms: 9.0 instead of 12.0 (-25 %)`, …"""
    because: tuple[str, ...]
    partly: tuple[str, ...]
    unexplained: bool
    count: str
    """`3 of 4 points`."""


@dataclass(frozen=True)
class Page:
    """What the template of an experiment's page gets."""

    pair: Pair
    definition: Definition
    data: Mapping[str, str]
    """Runtime → where its runs are, as a link."""
    root: Path
    """The folder of the page; its pictures are in `PLOTS` below."""
    digest: str = ""
    """Of the data: a picture that was drawn from other data is drawn anew; empty: none is drawn."""
    stale: tuple[str, ...] = ()
    """Runtimes that were measured before the experiment's file changed."""
    is_known: bool = False
    """Whether that file is one of lab/experiments."""
    is_archived: bool = False

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
        """Its runs, sim first."""
        return self.pair.runs

    @cached_property
    def numbers(self) -> Table:
        """The table of paper and runtimes."""
        return side_by_side(self.pair)

    @cached_property
    def pictures(self) -> list[tuple[Plot, str]]:
        """Each plot with the link to its picture."""
        plots = [plot for plot in self.pair.newest.plots if any(run.select(plot.where) for run in self.runs)]
        return [(plot, self._picture(plot)) for plot in plots]

    @cached_property
    def differences(self) -> list[DifferenceLine]:
        """Each difference above the limit, with its cause."""
        return [_line(line) for line in find_differences(self.pair, shown_metrics(self.pair))]

    @property
    def remarks(self) -> list[str]:
        """Notes on the experiment that explain no difference."""
        return [note.text for note in self.pair.notes if note.is_remark]

    @cached_property
    def is_not(self) -> list[tuple[str, str]]:
        """What the experiment's senders are not, in the runtimes that were measured."""
        used: dict[str, None] = {}
        for run in self.runs:
            scenarios = expand(self.definition, Selection(runtime=run.summary["runtime"], repeats=1))
            used |= dict.fromkeys(flow.variant for scenario in scenarios for flow in scenario.flows)
        return [(name, VARIANTS[name].is_not) for name in used if name in VARIANTS and VARIANTS[name].is_not]

    @cached_property
    def judged(self) -> list[Judged]:
        """Every bound in every runtime in which it is asked."""
        return list(judged_bounds(self.pair, verdict_table(self.pair), self.definition.experiment.expect))

    def sentences(self) -> list[list[Judged]]:
        """The bounds of each sentence in each runtime."""
        return group_by_sentence(self.judged)

    def count(self, state: str, runtime: str | None = None) -> int:
        """Bounds with a state (in a runtime)."""
        return sum(each.outcome.state == state and runtime in (None, each.runtime) for each in self.judged)

    def _picture(self, plot: Plot) -> str:
        path = self.root / PLOTS / f"{self.name}-{plot.name}.svg"
        if self.digest and picture_digest(path) != self.digest:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure = draw(plot, self.runs)
            with plt.rc_context({**RC, "svg.hashsalt": path.stem}):
                about = {"Date": None, "Description": f"data {self.digest}"}
                figure.savefig(path, facecolor="white", metadata=about)
            plt.close(figure)
        return f"![{plot.title}]({PLOTS}/{path.name})"


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
    judged = [each for page in pages for each in page.judged]
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


def make_report(folders: Sequence[Path], out: Path, notes_of: NotesOf = lambda _name: None) -> list[Path]:
    """Write a page for each experiment of some run folders into the folder `out`: its newest run in each runtime, side by side.

    Args:
        folders: The run folders.
        out: Where the pages go; their pictures are in `plots/` there.
        notes_of: An experiment's notes where they are newer than the runs.

    Returns:
        The pages.

    Raises:
        RunFolderError: A folder is no run folder of the lab, is of an experiment that is not valid any more, or there are none.

    """
    written: list[Path] = []
    for pair in pair_up(folders, notes_of):
        data = {run.runtime: os.path.relpath(run.path / "runs.parquet", out) for run in pair.runs}
        try:
            known = pair.experiment in experiment_names()
            definition = load(pair.experiment) if known else definition_as_run(pair.newest.definition)
            of = digest_files([run.path / "summary.json" for run in pair.runs], 16)
            text = _environment().get_template("experiment.md.j2").render(page=Page(pair, definition, data, out, of))
        except ExperimentError as error:
            raise RunFolderError(f"{pair.newest.path}: {error}") from None
        out.mkdir(parents=True, exist_ok=True)
        written.append(out / f"{pair.experiment}.md")
        written[-1].write_text(text, encoding="utf-8")
    return written


def _page(definition: Definition, results: Path, draws: bool) -> Page:
    archive, name = results / DATA, definition.experiment.name
    runs = [run for runtime in archived_runtimes(archive, name) if (run := open_archived(archive, definition, runtime))]
    known = name in experiment_names()  # of another the file as it is now is not known
    return Page(
        Pair(tuple(runs)),
        definition,
        data={run.runtime: f"{DATA}/{name}.{run.runtime}.runs.parquet" for run in runs},
        root=results,
        digest=digest(archive, name) if draws else "",
        stale=tuple(run.runtime for run in runs if known and is_stale(archive, definition, run)),
        is_known=known,
        is_archived=True,
    )


def _line(line: Line) -> DifferenceLine:
    largest = max(max(abs(each.value), abs(each.reference)) for each in line.differences)
    name = labels.rate_name(labels.name_of(line.metric), largest)

    def describe(each: Difference) -> str:
        value, reference = (labels.format_metric(line.metric, number, name) for number in (each.value, each.reference))
        return f"{each.point}: {value} instead of {reference} ({each.share * 100:+.0f} %)"

    against = "the paper" if line.against == "paper" else mark(line.against).label
    because = line.notes
    if line.explained_by_spread:
        because = ("Within the spread of the repeats: the 95 % interval of the difference holds 0.",)
    return DifferenceLine(
        f"{labels.axis_label(name)}: {mark(line.measured).label} against {against}",
        tuple(describe(each) for each in line.differences),
        because,
        line.partly if line.unexplained else (),
        line.unexplained,
        f"{len(line.differences)} of {line.compared}",
    )


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
        "runtime": _runtime,
        "cell": _cell,
        "words": _words,
        "sentences": group_by_sentence,
        "number": labels.number,
    }
    environment.filters.update(filters)
    return environment


def _runtime(name: str) -> str:
    """As a reader sees it."""
    return mark(name).label


def _words(text: object) -> str:
    """A text on one line."""
    return " ".join(str(text).split())


def _cell(text: object) -> str:
    """A text that may stand in a cell of a Markdown table."""
    return _words(text).replace("|", "\\|").replace("<", "&lt;")
