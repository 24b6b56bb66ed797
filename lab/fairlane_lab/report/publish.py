# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Pages in Markdown, one an experiment: those of docs/results from the archive, with the claims of the papers and our own hypotheses, and those of run folders."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from jinja2 import Environment, PackageLoader, StrictUndefined

from fairlane_lab.definition import Definition, experiment_names
from fairlane_lab.definition.claims import ClaimBound
from fairlane_lab.definition.draws import draws_of
from fairlane_lab.definition.judging import Changed
from fairlane_lab.definition.names import RUNTIMES
from fairlane_lab.definition.plots import Plot
from fairlane_lab.paths import RESULTS_DATA, digest_files
from fairlane_lab.report import labels
from fairlane_lab.report.archive import archived_definitions, digest, is_stale, open_measured
from fairlane_lab.report.differences import find_differences
from fairlane_lab.report.figures import draw, save
from fairlane_lab.report.judged import STATES, Judged, Sentence, claim_rows, judge, sentences
from fairlane_lab.report.run_folder import Measured, gather
from fairlane_lab.report.tables import Numbers, main_metrics, numbers

PLOTS = "plots"
DATA = RESULTS_DATA.name
TABLES = "tables"
_TAG = re.compile(r"<[^>]+>")
_LONG_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{3,}(?![\w.])")
ROWS_SHOWN = 12
"""Numbers of an experiment that stand on its page; all are in its table's file."""


@dataclass(frozen=True)
class Page(Measured):
    """What the template of an experiment's page gets."""

    data: Mapping[str, str] = field(default_factory=dict[str, str])
    """Runtime → where its runs are, as a link."""
    root: Path = Path()
    """The folder of the page; its pictures are in `PLOTS` below."""
    digest: str = ""
    """Of the data: a picture that was drawn from other data is drawn anew; empty: none is drawn."""
    stale: tuple[str, ...] = ()
    """Runtimes that were measured before the experiment's file changed."""
    is_archived: bool = False

    @property
    def is_known(self) -> bool:
        """Whether its file is one of lab/experiments."""
        return self.is_archived and self.name in experiment_names()

    @property
    def drawn(self) -> str:
        """What differs from run to run."""
        return draws_of(self.definition.document).text()

    @cached_property
    def metrics(self) -> list[str]:
        """The main metrics of the newest run, then what the paper has numbers of."""
        newest = self.newest
        there = {metric for run in self.runs for point in run.points for metric in point.metrics}
        paper = [metric for entry in newest.paper for metric in entry.values if metric in there]
        return list(dict.fromkeys([*main_metrics(newest), *paper]))

    @cached_property
    def numbers(self) -> Numbers:
        """The table of paper and runtimes."""
        return numbers(self.points(), self.newest, self.metrics, intervals=True)

    @cached_property
    def pictures(self) -> list[tuple[Plot, str]]:
        """Each plot with the link to its picture."""
        plots = [plot for plot in self.newest.plots if any(run.select(plot.where) for run in self.runs)]
        return [(plot, self._picture(plot)) for plot in plots]

    @cached_property
    def causes(self) -> list[tuple[str, str]]:
        """Causes of differences, each with the comparisons that it explains; an empty cause: nothing explains them. What lies within the spread of the repeats is none."""
        found: dict[str, dict[str, list[str]]] = {}
        for line in find_differences(self, self.metrics):
            against = "the paper" if line.against == "paper" else _runtime(line.against)
            points = f"{labels.name_of(line.metric).label} {len(line.shares)} of {line.compared}"
            for cause in () if line.in_spread else line.notes or ("",):
                compared = found.setdefault(cause, {}).setdefault(f"{_runtime(line.measured)} against {against}", [])
                compared.append(points)
        return [
            (cause, "; ".join(f"{compared}: {', '.join(points)}" for compared, points in where.items()))
            for cause, where in found.items()
        ]

    @property
    def remarks(self) -> list[str]:
        """Notes on the experiment that explain no difference."""
        return [note.text for note in self.definition.experiment.notes if note.is_remark]

    @cached_property
    def judged(self) -> list[Judged]:
        """Every bound in every runtime in which it is asked."""
        return judge(self)

    @cached_property
    def sentences(self) -> list[Sentence]:
        """What the experiment asks, a row for each sentence."""
        return sentences(self.judged)

    @property
    def whys(self) -> dict[str, list[str]]:
        """Why sentences are not met, as far as it is known, each reason with its sentences."""
        found: dict[str, list[str]] = {}
        for row in self.sentences:
            if row.why:
                found.setdefault(row.why, []).append(row.text)
        return found

    @property
    def changed(self) -> list[tuple[str, Changed]]:
        """Every bound of its own that was changed after it was measured, and how."""
        expect = self.definition.experiment.expect
        return [(each.text, change) for each in expect if not isinstance(each, ClaimBound) for change in each.changed]

    def texts(self) -> dict[str, str]:
        """The page and, as CSV, all its numbers, bounds and their changes, by the file's name."""
        rows = ((row.point, row.source, row.runs, *row.cells) for row in self.numbers.rows)
        written = {
            f"{self.name}.md": _render("experiment.md.j2", page=self),
            f"{TABLES}/{self.name}.numbers.csv": _csv(("point", "in", "n", *self.numbers.heads), rows),
            f"{TABLES}/{self.name}.bounds.csv": _bounds_csv(self.judged),
        }
        return written | ({f"{TABLES}/{self.name}.changes.csv": _changes_csv(self.changed)} if self.changed else {})

    def _picture(self, plot: Plot) -> str:
        path = self.root / PLOTS / f"{self.name}-{plot.name}.svg"
        if self.digest and picture_digest(path) != self.digest:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure, drawn = draw(plot, self.runs), io.StringIO()
            save(figure, drawn, {"Date": None, "Description": f"data {self.digest}"}, "svg")
            path.write_text(round_coordinates(drawn.getvalue()), encoding="utf-8")
            plt.close(figure)
        return f"![{plot.name}]({PLOTS}/{path.name})"


def _bounds_csv(judged: Iterable[Judged]) -> str:
    head = ("sentence", "claim", "for", "bound", "runtime", "measured", "95 % interval", "n", "verdict", "runs that would decide")  # fmt: skip
    lines = [
        (each.text, each.claim, ", ".join(filter(None, (each.per, each.at))), each.bound, each.runtime, each.value,
         each.interval, each.runs, "not judged" if each.state == "no data" else each.state,
         each.verdict.get("runs_needed") or "")
        for each in judged
    ]  # fmt: skip
    return _csv(head, lines)


def _changes_csv(changed: Iterable[tuple[str, Changed]]) -> str:
    head = ("bound of", "day", "from", "to", "why")
    return _csv(head, ((of, each.day, each.before, each.after, _words(each.why)) for of, each in changed))


def _csv(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


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
    texts = {name: text for page in pages for name, text in page.texts().items()}
    judged = [each for page in pages for each in page.judged]
    claims = claim_rows(judged)
    states = dict.fromkeys(["met", "not met", *(each.state for row in claims for each in row.answers.values())])
    ours = sentences(each for each in judged if not each.claim)
    changes = ((row.claim.id, change) for row in claims for change in row.claim.changed)
    return {
        "index.md": _render("claims.md.j2", claims=claims, states=states, pages=pages),
        "hypotheses.md": _render("hypotheses.md.j2", rows=ours, states=STATES),
        f"{TABLES}/claims.changes.csv": _changes_csv(changes),
        **texts,
    }


def write_pages(results: Path, show_progress: Callable[[str], None] = lambda _name: None) -> list[Path]:
    """Write every page into `results`, and remove pages and pictures that nothing is archived for. Returns the pages."""
    pages = make_pages(results, show_progress)
    _write(results, pages)
    for name in _written(results):
        if name not in pages:
            (results / name).unlink()
    for picture in (results / PLOTS).glob("*.svg"):
        if not any(f"{PLOTS}/{picture.name}" in text for text in pages.values()):
            picture.unlink()
    return [results / name for name in pages if name.endswith(".md")]


def round_coordinates(svg: str) -> str:
    """The picture with coordinates to a hundredth of a point; its texts, numbers at the axes among them, stay."""

    def short(number: re.Match[str]) -> str:
        return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")

    return _TAG.sub(lambda tag: _LONG_NUMBER.sub(short, tag[0]), svg)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    (folder / TABLES).mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _written(results: Path) -> list[str]:
    """Names of the pages and tables that are there."""
    found = (*results.glob("*.md"), *results.glob(f"{TABLES}/*.csv"))
    return [str(path.relative_to(results)) for path in found]


def find_differing_pages(results: Path, show_progress: Callable[[str], None] = lambda _name: None) -> list[str]:
    """Names of the pages and pictures that are not what the archive says; nothing is drawn or written."""
    pages = make_pages(results, show_progress, draws=False)
    there = {name: (results / name).read_text(encoding="utf-8") for name in _written(results)}
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


def make_report(folders: Sequence[Path], out: Path) -> list[Path]:
    """Write a page for each experiment of some run folders into the folder `out`: its newest run in each runtime, side by side.

    Args:
        folders: The run folders.
        out: Where the pages go; their pictures are in `plots/` there.

    Returns:
        The pages.

    Raises:
        RunFolderError: A folder is no run folder of the lab, is of an experiment that is not valid any more, or there are none.

    """
    written: list[Path] = []
    for measured in gather(folders):
        data = {run.runtime: os.path.relpath(run.path / "runs.parquet", out) for run in measured.runs}
        of = digest_files([run.path / "summary.json" for run in measured.runs], 16)
        _write(out, Page(measured.definition, measured.runs, measured.older, data, out, of).texts())
        written.append(out / f"{measured.name}.md")
    return written


def _page(definition: Definition, results: Path, draws: bool) -> Page:
    archive, name = results / DATA, definition.experiment.name
    runs = open_measured(archive, definition).runs
    known = name in experiment_names()  # of another the file as it is now is not known
    return Page(
        definition,
        runs,
        data={run.runtime: f"{DATA}/{name}.{run.runtime}.runs.parquet" for run in runs},
        root=results,
        digest=digest(archive, name) if draws else "",
        stale=tuple(run.runtime for run in runs if known and is_stale(archive, definition, run)),
        is_archived=True,
    )


def _render(template: str, **values: Any) -> str:
    environment = Environment(
        loader=PackageLoader("fairlane_lab.report", "templates"),
        autoescape=False,  # Markdown
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters.update({"runtime": _runtime, "cell": _cell, "words": _words})
    return environment.get_template(template).render(runtimes=RUNTIMES, rows_shown=ROWS_SHOWN, **values)


def _runtime(name: str) -> str:
    """As a reader sees it."""
    return labels.value_label("runtime", name)


def _words(text: object) -> str:
    """A text on one line."""
    return " ".join(str(text).split())


def _cell(text: object) -> str:
    """A text that may stand in a cell of a Markdown table."""
    return _words(text).replace("|", "\\|").replace("<", "&lt;")
