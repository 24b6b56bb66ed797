# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Pages in Markdown, one an experiment: those of docs/results from the archive, with the claims of the papers and our own hypotheses, and those of run folders."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from jinja2 import Environment, PackageLoader, StrictUndefined

from fairlane_lab.definition import Definition, ExperimentError, experiment_names, load
from fairlane_lab.definition.claims import ClaimBound, read_claims
from fairlane_lab.definition.draws import draws_of
from fairlane_lab.definition.judging import Changed
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
from fairlane_lab.report.claims import NOT_RUN, Answer, Judged, answer_of, claim_rows, judged_bounds
from fairlane_lab.report.differences import find_differences
from fairlane_lab.report.figures import draw, save
from fairlane_lab.report.pairing import NotesOf, Pair, pair_up
from fairlane_lab.report.run_folder import RunFolder
from fairlane_lab.report.side_by_side import Table, shown_metrics, side_by_side
from fairlane_lab.report.verdict_table import verdict_table
from fairlane_lab.results.summary_file import RunFolderError

PLOTS = "plots"
DATA = RESULTS_DATA.name
TABLES = "tables"
_TAG = re.compile(r"<[^>]+>")
_LONG_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{3,}(?![\w.])")
ROWS_SHOWN = 12
"""Numbers of an experiment that stand on its page; all are in its table's file."""
STATES = ("not met", NOT_RUN, "too few by design", "undecided", "met")
"""What can become of a sentence, the worst first."""


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
    def causes(self) -> list[tuple[str, str]]:
        """Causes of differences, each with the comparisons that it explains; an empty cause: nothing explains them. What lies within the spread of the repeats is none."""
        found: dict[str, dict[str, list[str]]] = {}
        for line in find_differences(self.pair, shown_metrics(self.pair)):
            against = "the paper" if line.against == "paper" else labels.value_label("runtime", line.against)
            points = f"{labels.name_of(line.metric).label} {len(line.differences)} of {line.compared}"
            for cause in () if line.explained_by_spread else line.notes or ("",):
                found.setdefault(cause, {}).setdefault(
                    f"{labels.value_label('runtime', line.measured)} against {against}", []
                ).append(points)
        return [
            (cause, "; ".join(f"{compared}: {', '.join(points)}" for compared, points in where.items()))
            for cause, where in found.items()
        ]

    @property
    def remarks(self) -> list[str]:
        """Notes on the experiment that explain no difference."""
        return [note.text for note in self.pair.notes if note.is_remark]

    @cached_property
    def judged(self) -> list[Judged]:
        """Every bound in every runtime in which it is asked."""
        return list(judged_bounds(self.pair, verdict_table(self.pair), self.definition.experiment.expect))

    @cached_property
    def sentences(self) -> list[SentenceRow]:
        """What the experiment asks, a row for each sentence."""
        return sentence_rows(self.judged)

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

    def tables(self) -> dict[str, str]:
        """All its numbers, its bounds and their changes, as CSV by the file's name."""
        rows = ((row.point, row.source, row.runs, *row.cells) for row in self.numbers.rows)
        numbers = _csv(("point", "in", "n", *self.numbers.heads), rows)
        written = {
            f"{TABLES}/{self.name}.numbers.csv": numbers,
            f"{TABLES}/{self.name}.bounds.csv": bounds_csv(self.judged),
        }
        if self.changed:
            written[f"{TABLES}/{self.name}.changes.csv"] = changes_csv(self.changed)
        return written

    def _picture(self, plot: Plot) -> str:
        path = self.root / PLOTS / f"{self.name}-{plot.name}.svg"
        if self.digest and picture_digest(path) != self.digest:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure = draw(plot, self.runs)
            drawn = io.StringIO()
            save(figure, drawn, {"Date": None, "Description": f"data {self.digest}"}, "svg")
            path.write_text(round_coordinates(drawn.getvalue()), encoding="utf-8")
            plt.close(figure)
        return f"![{plot.name}]({PLOTS}/{path.name})"


@dataclass(frozen=True)
class SentenceRow:
    """One sentence of an experiment and what each runtime says to it."""

    experiment: str
    text: str
    bound: str
    answers: Mapping[str, Answer]
    why: str
    """Why it is not met, as far as it is known; empty where it is met."""

    @property
    def state(self) -> str:
        """The worst of the answers, `met` being the best."""
        return min((answer.state for answer in self.answers.values()), key=STATES.index)


def sentence_rows(judged: Iterable[Judged]) -> list[SentenceRow]:
    """A row for each sentence, in the file's order."""
    found: dict[tuple[str, str], list[Judged]] = {}
    for each in judged:
        found.setdefault((each.experiment, each.claim or each.asked.text), []).append(each)
    sentences = {claim.id: claim.sentence for claim in read_claims()}
    rows: list[SentenceRow] = []
    for (experiment, _), asked in found.items():
        claim = asked[0].claim
        text = f"{claim}: {sentences[claim]}" if claim else asked[0].asked.text
        of_runtime = {runtime: [each for each in asked if each.runtime == runtime] for runtime in RUNTIMES}
        answers = {runtime: answer_of(bounds) for runtime, bounds in of_runtime.items() if bounds}
        bounds = list(dict.fromkeys(each.asked.bound for each in asked))
        bound = bounds[0] if len(bounds) == 1 else f"{len(bounds)} bounds"
        why = next((each.why for each in asked if each.outcome.state == "not met" and each.why), "")
        rows.append(SentenceRow(experiment, text, bound, answers, why))
    return rows


def bounds_csv(judged: Iterable[Judged]) -> str:
    """Every bound in every runtime, a line each."""
    head = ("sentence", "claim", "for", "bound", "runtime", "measured", "95 % interval", "n", "verdict", "runs that would decide")  # fmt: skip
    lines = [
        (each.asked.text, each.claim, ", ".join(filter(None, (each.asked.per, each.outcome.at))), each.asked.bound, each.runtime,
         each.outcome.value, each.outcome.interval, each.outcome.runs, each.outcome.state, each.outcome.needed or "")
        for each in judged
    ]  # fmt: skip
    return _csv(head, lines)


def changes_csv(changed: Iterable[tuple[str, Changed]]) -> str:
    """Every change of a bound after it was measured, a line each."""
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
    template = _environment().get_template
    texts = {f"{page.name}.md": template("experiment.md.j2").render(page=page) for page in pages}
    texts |= {name: text for page in pages for name, text in page.tables().items()}
    judged = [each for page in pages for each in page.judged]
    claims = claim_rows(judged)
    states = dict.fromkeys(["met", "not met", *(each.state for row in claims for each in row.answers.values())])
    index = template("claims.md.j2").render(
        claims=claims, states=states, runtimes=RUNTIMES, pages=pages, measured={page.name for page in pages}
    )
    texts[f"{TABLES}/claims.changes.csv"] = changes_csv(
        (row.claim.id, change) for row in claims for change in row.claim.changed
    )
    ours = sentence_rows(each for each in judged if not each.claim)
    hypotheses = template("hypotheses.md.j2").render(rows=ours, states=STATES, runtimes=RUNTIMES)
    return {"index.md": index, "hypotheses.md": hypotheses, **texts}


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
            page = Page(pair, definition, data, out, of)
            text = _environment().get_template("experiment.md.j2").render(page=page)
        except ExperimentError as error:
            raise RunFolderError(f"{pair.newest.path}: {error}") from None
        _write(out, {f"{page.name}.md": text, **page.tables()})
        written.append(out / f"{page.name}.md")
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
        "number": labels.number,
    }
    environment.filters.update(filters)
    environment.globals["rows_shown"] = ROWS_SHOWN  # pyright: ignore[reportArgumentType]
    return environment


def _runtime(name: str) -> str:
    """As a reader sees it."""
    return labels.value_label("runtime", name)


def _words(text: object) -> str:
    """A text on one line."""
    return " ".join(str(text).split())


def _cell(text: object) -> str:
    """A text that may stand in a cell of a Markdown table."""
    return _words(text).replace("|", "\\|").replace("<", "&lt;")
