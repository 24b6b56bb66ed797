# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Pages in Markdown from archived runs: those of docs/results, one a question, the claims of the papers first; and those of one's own run folders.

An experiment is a section of a page: what it was asked, what came out, and every difference of more than 10 % between paper, sim, kernel
and Mininet (2 % of a Jain index from the paper's), with its cause as far as notes give it. A note explains a difference when it is `against`
the same reference, its `where` and `metrics` match, and the difference lies in its `share`. One without a share is a remark and explains nothing.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib.pyplot as plt
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from fairlane_lab.definition.extend import experiment_names, read_as
from fairlane_lab.definition.judging import Changed, ClaimBound, Note, Plot
from fairlane_lab.definition.names import RUNTIMES
from fairlane_lab.definition.points import draws_of
from fairlane_lab.definition.strict import Strict, matches
from fairlane_lab.paths import RESULTS_DATA
from fairlane_lab.report import labels
from fairlane_lab.report.archive import archive_runs, archived_definitions, digest, is_stale, open_measured
from fairlane_lab.report.figures import draw, draw_ratios, save
from fairlane_lab.report.judged import STATES, ClaimRow, Judged, Sentence, claim_rows, judge, sentences
from fairlane_lab.report.run_folder import Measured, Point
from fairlane_lab.report.tables import Numbers, main_metrics, numbers
from fairlane_lab.results.statistics import Spread

LIMIT = 0.10
JAIN_LIMIT = 0.02
"""Of a Jain index from the paper's: an equal split of what should be shared 1:2 scores 0.92 already."""


@dataclass
class Line:
    """Differences of one metric in one direction of comparison that have the same explanation."""

    metric: str
    measured: str
    """Runtime that was measured."""
    against: str
    """`paper`, `sim` or `kernel`."""
    notes: tuple[str, ...]
    """Texts of the notes that explain it."""
    in_spread: bool
    """No note explains it, but 95 % intervals of the differences hold 0."""
    of_zero: bool = False
    """Whether the reference is 0: then a difference has no size in per cent."""
    compared: int = 0
    """Points that could be compared."""
    shares: dict[str, float] = field(default_factory=dict[str, float])
    """Point → (measured - reference) / |reference|."""


def find_differences(experiment: Measured, metrics: Sequence[str]) -> list[Line]:
    """Lines in the order of the metrics: each runtime against the paper, then runtimes against each other."""
    lines: dict[tuple[object, ...], Line] = {}
    compared: Counter[tuple[str, ...]] = Counter()
    for metric in metrics:
        for name, points in experiment.points().items():
            for measured, against, spread, reference in _pairs(experiment, points, metric):
                compared[metric, measured, against] += 1
                limit = JAIN_LIMIT if (metric, against) == ("jain", "paper") else LIMIT
                share = _share(spread.value, reference.value)
                if abs(share) <= limit:
                    continue
                fitting = fitting_notes(
                    experiment.definition.experiment.notes, points[measured], metric, measured, against
                )
                notes = tuple(note.text for note in fitting if note.explains(share))
                apart = spread.minus(reference)
                in_spread, of_zero = not notes and apart.lo <= 0 <= apart.hi, not reference.value
                line = Line(metric, measured, against, notes, in_spread, of_zero)
                key = (metric, measured, against, notes, in_spread, of_zero)
                lines.setdefault(key, line).shares[name] = share
    for line in lines.values():
        line.compared = compared[line.metric, line.measured, line.against]
    return list(lines.values())


def _share(measured: float, reference: float) -> float:
    """By what share of the reference a value differs from it; infinite where it alone never came, or the reference is 0."""
    if measured == reference:
        return 0.0
    if not reference:
        return math.copysign(math.inf, measured)
    return -1.0 if math.isinf(reference) else (measured - reference) / abs(reference)


def fitting_notes(notes: Sequence[Note], point: Point, metric: str, runtime: str, against: str) -> list[Note]:
    """Notes on a difference of `metric` at a point measured in `runtime` from `against` (`paper`, `sim` or `kernel`), of whatever size."""
    params = {**point.params, "runtime": runtime}
    return [
        note
        for note in notes
        if not note.is_remark
        and note.against == against
        and (not note.metrics or metric in note.metrics)
        and matches(note.where, params)
    ]


def _pairs(experiment: Measured, points: dict[str, Point], metric: str) -> Iterator[tuple[str, str, Spread, Spread]]:
    """(measured in, against, measured, reference) for one point and metric."""
    spreads = {runtime: spread for runtime, point in points.items() if (spread := point.get(metric))}
    # Other sources than the paper are other schemes to be compared with, not to be reproduced.
    paper = experiment.newest.paper_values(next(iter(points.values())), metric).get("")
    for runtime, spread in spreads.items():
        if paper is not None:
            yield runtime, "paper", spread, Spread(paper, paper, paper)
    for measured, reference in (("kernel", "sim"), ("mininet", "sim"), ("mininet", "kernel")):
        if measured in spreads and reference in spreads:
            yield measured, reference, spreads[measured], spreads[reference]


def numbers_of_paper(experiment: Measured, metrics: Sequence[str]) -> Iterator[tuple[str, str, str, float, float]]:
    """Point, metric, runtime, the paper's value, and the measured one, both in the metric's own unit."""
    for metric in metrics:
        for name, points in experiment.points().items():
            for runtime, against, spread, reference in _pairs(experiment, points, metric):
                if against == "paper":
                    yield name, metric, runtime, reference.value, spread.value


PLOTS = "plots"
TABLES = "tables"


@dataclass(frozen=True)
class Section(Measured):
    """What the template of a page gets of an experiment."""

    @property
    def is_known(self) -> bool:
        """Whether its file is one of lab/experiments."""
        return self.name in experiment_names()

    @property
    def stale(self) -> list[str]:
        """Runtimes that were measured before the experiment's file changed; of a file that is not one of lab/experiments it is not known."""
        known = self.is_known
        return [run.runtime for run in self.runs if known and is_stale(run.path, self.definition, run)]

    @property
    def command(self) -> str:
        """What makes the first of its runs again."""
        run = self.runs[0]
        runtime = "" if run.runtime == "sim" else f" --runtime {run.runtime}"
        seed = "" if run.seed == 1 else f" --seed {run.seed}"
        file = run.copy_of_file.name if run.copy_of_file and not self.is_known else self.name
        return f"fairlane lab run {file}{runtime}{seed}"

    @property
    def drawn(self) -> str:
        """What differs from run to run."""
        return draws_of(self.definition.document).text()

    @cached_property
    def metrics(self) -> list[str]:
        """The main metrics of the newest run, then what the paper has numbers of."""
        newest = self.newest
        there = {metric for run in self.runs for point in run.points for metric in point.metrics}
        paper = [metric for entry in newest.definition.paper_numbers for metric in entry.values if metric in there]
        return list(dict.fromkeys([*main_metrics(newest), *paper]))

    @cached_property
    def numbers(self) -> Numbers:
        """The table of paper and runtimes."""
        return numbers(self.points(), self.newest, self.metrics, intervals=True)

    @cached_property
    def pictures(self) -> dict[str, Plot]:
        """Each plot that has points, by the link to its picture."""
        plots = [plot for plot in self.newest.definition.plots if any(run.select(plot.where) for run in self.runs)]
        return {f"{PLOTS}/{self.name}-{plot.name}.svg": plot for plot in plots}

    @cached_property
    def differences(self) -> list[Line]:
        """Every difference, and what explains it."""
        return find_differences(self, self.metrics)

    @property
    def causes(self) -> list[tuple[str, str]]:
        """Causes of differences, each with the comparisons that it explains; an empty cause: nothing explains them. What lies within the spread of the repeats is none."""
        found: dict[str, Counter[str]] = {}
        for line in self.differences:
            for cause in () if line.in_spread else line.notes or ("",):
                found.setdefault(cause, Counter())[_pair(line)] += len(line.shares)
        return [(cause, ", ".join(f"{pair} ({count})" for pair, count in of.items())) for cause, of in found.items()]

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
    def changed(self) -> list[tuple[str, Changed]]:
        """Every bound of its own that was changed after it was measured, and how."""
        expect = self.definition.experiment.expect
        return [(each.text, change) for each in expect if not isinstance(each, ClaimBound) for change in each.changed]

    @cached_property
    def tables(self) -> dict[str, str]:
        """All that it has, as CSV: bounds, their changes, numbers, differences; by the file's name."""
        rows = ((row.point, row.source, row.runs, *row.cells) for row in self.numbers.rows)
        found = {
            "bounds": bounds_csv(self.judged),
            "changes": changes_csv(self.changed) if self.changed else "",
            "numbers": to_csv(("point", "in", "n", *self.numbers.heads), rows),
            "differences": _differences_csv(self.differences) if self.differences else "",
        }
        return {f"{TABLES}/{self.name}.{kind}.csv": text for kind, text in found.items() if text}


def bounds_csv(judged: Iterable[Judged]) -> str:
    """A row for each bound in each runtime."""
    head = ("sentence", "claim", "for", "bound", "runtime", "measured", "95 % interval", "n", "verdict")  # fmt: skip
    lines = [
        (each.text, each.claim, ", ".join(filter(None, (each.per, each.at))), each.bound, each.runtime, each.value,
         each.interval, each.runs, "not judged" if each.state == "no data" else each.state)
        for each in judged
    ]  # fmt: skip
    return to_csv(head, lines)


def changes_csv(changed: Iterable[tuple[str, Changed]]) -> str:
    """A row for each change of a bound."""
    head = ("bound of", "day", "from", "to", "why")
    return to_csv(head, ((of, each.day, each.before, each.after, one_line(each.why)) for of, each in changed))


def _differences_csv(differences: Iterable[Line]) -> str:
    head = ("metric", "in", "differs from", "points that differ", "points compared", "smallest", "largest", "cause")
    lines = [
        (labels.name_of(line.metric).label, *_pair(line).split(" against "), len(line.shares), line.compared,
         *("of 0" if line.of_zero else _percent(end(line.shares.values())) for end in (min, max)),
         one_line(" ".join(line.notes)) or ("spread of the repeats" if line.in_spread else "not explained"))
        for line in differences
    ]  # fmt: skip
    return to_csv(head, lines)


def _percent(share: float) -> str:
    return "never" if math.isinf(share) else f"{share:+.1%}"


def _pair(line: Line) -> str:
    against = "the paper" if line.against == "paper" else labels.value_label("runtime", line.against)
    return f"{labels.value_label('runtime', line.measured)} against {against}"


def to_csv(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A table as the text of its file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def one_line(text: object) -> str:
    """A text without line breaks."""
    return " ".join(str(text).split())


DATA = RESULTS_DATA.name
QUESTIONS = "pages.toml"
"""Beside the archive: the question of each page, and the experiments that answer it."""
RATIOS = f"{PLOTS}/paper.svg"
_TAG = re.compile(r"<[^>]+>")
_LONG_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{3,}(?![\w.])")
ROWS_SHOWN = 12
"""Numbers of an experiment that stand on its page, of docs/results half as many; all are in its table's file."""


class Question(Strict):
    """A page of several experiments."""

    name: str
    question: str
    experiments: tuple[str, ...]


class Questions(Strict):
    """The file `QUESTIONS`; an experiment that it does not name has a page of its own."""

    pages: tuple[Question, ...] = ()
    pictures: tuple[str, ...] = ()
    """EXPERIMENT-PLOT: what the index shows."""


@dataclass(frozen=True)
class Page:
    """A question, and the experiments that answer it."""

    name: str
    question: str
    sections: Sequence[Section]
    is_published: bool
    """Whether it stands among the pages of docs/results, with an index; else alone."""

    @property
    def sentences(self) -> list[Sentence]:
        """What all its experiments ask."""
        return [row for section in self.sections for row in section.sentences]

    @property
    def on_linux(self) -> list[str]:
        """The experiments that Linux's TCP can run, too."""
        return [each.name for each in self.sections if each.definition.experiment.runs_in("mininet")]

    @property
    def drawn(self) -> dict[str, list[str]]:
        """What differs from run to run → the experiments in which it does."""
        found: dict[str, list[str]] = {}
        for section in self.sections:
            found.setdefault(section.drawn, []).append(section.name)
        return found

    def files(self) -> dict[str, Content]:
        """The page with its tables and pictures."""
        files: dict[str, Content] = {f"{self.name}.md": _render("page.md.j2", page=self)}
        for section in self.sections:
            files |= section.tables
            of = digest(section.runs[0].path, section.name)
            for link, plot in section.pictures.items():
                files[link] = Picture(of, partial(draw, plot, section.runs))
        return files


@dataclass(frozen=True)
class Picture:
    """A picture that is drawn where there is none of the same data."""

    digest: str
    draw: Callable[[], Figure]

    def write(self, path: Path) -> None:
        """Draw it, unless it is there."""
        if picture_digest(path) != self.digest:
            figure, drawn = self.draw(), io.StringIO()
            save(figure, drawn, {"Date": None, "Description": f"data {self.digest}"}, "svg")
            path.write_text(round_coordinates(drawn.getvalue()), encoding="utf-8")
            plt.close(figure)


Content: TypeAlias = "str | Picture"
"""Of a file of a folder of pages: a page or a table, or a picture."""


def make_pages(
    results: Path, show_progress: Callable[[str], None] = lambda _name: None, is_published: bool = True
) -> dict[str, Content]:
    """Every file of the pages by its name, from the archive in `results`/data; writes nothing.

    Raises RunFolderError for a damaged archive, ExperimentError for an experiment's file or a file of questions with errors.
    """
    sections: dict[str, Section] = {}
    for definition in archived_definitions(results / DATA):
        show_progress(definition.experiment.name)
        sections[definition.experiment.name] = Section(definition, open_measured(results / DATA, definition).runs)
    questions = results / QUESTIONS
    asked = read_as(questions, Questions) if questions.exists() else Questions()
    pages = [
        Page(each.name, each.question, [sections[name] for name in each.experiments if name in sections], is_published)
        for each in asked.pages
        if not sections.keys().isdisjoint(each.experiments)
    ]
    named = {name for each in asked.pages for name in each.experiments}
    pages += [
        Page(name, section.definition.experiment.title, [section], is_published)
        for name, section in sections.items()
        if name not in named
    ]
    found = _index(pages, asked.pictures) if is_published else {}
    for page in pages:
        found |= page.files()
    return found


def _index(pages: Sequence[Page], shown: Sequence[str]) -> dict[str, Content]:
    """Claims first; then our own sentences, those that are not met first, as a table."""
    sections = {section.name: section for page in pages for section in page.sections}
    judged = [each for _, section in sorted(sections.items()) for each in section.judged]
    claims = claim_rows(judged) if any(each.claim for each in judged) else []
    ours = sorted(sentences(each for each in judged if not each.claim), key=lambda row: STATES.index(row.state))
    papers = [(name, *row) for name, section in sections.items() for row in numbers_of_paper(section, section.metrics)]
    plots = {link: plot for section in sections.values() for link, plot in section.pictures.items()}
    links = [link for name in shown if (link := f"{PLOTS}/{name}.svg") in plots]
    tables = {
        "claims": _claims_csv(claims),
        "claims.changes": changes_csv((row.claim.id, change) for row in claims for change in row.claim.changed),
        "hypotheses": _sentences_csv(ours),
        "paper": to_csv(("experiment", "point", "metric", "runtime", "paper", "measured"), papers),
    }
    best_first = STATES[::-1]
    found = {each.state for row in claims for each in row.answers.values()}
    index = _render(
        "index.md.j2",
        claims=claims,
        states=[state for state in best_first if state in found],
        best_first=best_first,
        ours=ours,
        pages=pages,
        places={section.name: f"{page.name}.md#{section.name}" for page in pages for section in page.sections},
        pictures=[(plots[link], link) for link in links],
        ratios=RATIOS if papers else "",
    )
    files: dict[str, Content] = {"index.md": index}
    files |= {f"{TABLES}/{name}.csv": text for name, text in tables.items()}
    of = hashlib.blake2b(tables["paper"].encode(), digest_size=8).hexdigest()
    return files | ({RATIOS: Picture(of, partial(draw_ratios, papers))} if papers else {})


def _claims_csv(claims: Iterable[ClaimRow]) -> str:
    fields = ("id", "paper", "where", "sentence", "kind", "bound", "day", "paper_number", "assumption", "lacks")
    rows = [(*(getattr(row.claim, name) for name in fields), *map(str, row.answers.values())) for row in claims]
    return to_csv((*fields, *RUNTIMES), rows)


def _sentences_csv(rows: Iterable[Sentence]) -> str:
    lines = [
        (row.experiment, row.text, row.bound, row.state, *(str(row.answers.get(runtime, "")) for runtime in RUNTIMES))
        for row in rows
    ]
    return to_csv(("experiment", "asked", "bound", "worst", *RUNTIMES), lines)


def write_pages(
    results: Path, show_progress: Callable[[str], None] = lambda _name: None, is_published: bool = True
) -> list[Path]:
    """Write every page into `results`; published ones take the place of all that is there. Returns the pages."""
    files = make_pages(results, show_progress, is_published)
    for name in (PLOTS, TABLES):
        (results / name).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if isinstance(content, Picture):
            content.write(results / name)
        else:
            (results / name).write_text(content, encoding="utf-8")
    for name in _written(results) if is_published else ():
        if name not in files:
            (results / name).unlink()
    return [results / name for name in files if name.endswith(".md")]


def round_coordinates(svg: str) -> str:
    """The picture with coordinates to a hundredth of a point; its texts, numbers at the axes among them, stay."""

    def rounded(number: re.Match[str]) -> str:
        return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")

    return _TAG.sub(lambda tag: _LONG_NUMBER.sub(rounded, tag[0]), svg)


def _written(results: Path) -> list[str]:
    """Names of the pages, tables and pictures that are there."""
    found = (*results.glob("*.md"), *results.glob(f"{TABLES}/*.csv"), *results.glob(f"{PLOTS}/*.svg"))
    return [str(path.relative_to(results)) for path in found]


def find_differing_pages(results: Path, show_progress: Callable[[str], None] = lambda _name: None) -> list[str]:
    """Names of the pages and pictures that are not what the archive says; nothing is drawn or written."""
    files = make_pages(results, show_progress)
    wanted = {name: content.digest if isinstance(content, Picture) else content for name, content in files.items()}
    there = {
        name: picture_digest(results / name) if name.endswith(".svg") else (results / name).read_text(encoding="utf-8")
        for name in _written(results)
    }
    return [name for name in sorted({*wanted, *there}) if wanted.get(name) != there.get(name)]


def picture_digest(path: Path) -> str:
    """Of the data that a picture was drawn from; empty when it does not say, or is not there."""
    if not path.exists():
        return ""
    _, found, rest = path.read_text(encoding="utf-8").partition("data ")
    return rest[:16] if found else ""


def make_report(folders: Sequence[Path], out: Path) -> list[Path]:
    """Archive run folders in `out`/data, and write a page for each experiment that is there, its runs of each runtime side by side.

    Args:
        folders: The run folders, whatever they are of; the newest of an experiment and runtime stays.
        out: Where the pages go; their pictures are in `plots/` there, their tables in `tables/`.

    Returns:
        The pages.

    Raises:
        RunFolderError: A folder is no run folder of the lab, or is of an experiment that is not valid any more.

    """
    archive_runs(folders, out / DATA)
    return write_pages(out, is_published=False)


def _render(template: str, **values: Any) -> str:
    environment = Environment(
        loader=PackageLoader("fairlane_lab.report", "templates"),
        autoescape=False,  # Markdown
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters.update({"runtime": partial(labels.value_label, "runtime"), "cell": _cell, "words": one_line})
    text = environment.get_template(template).render(runtimes=RUNTIMES, rows_shown=ROWS_SHOWN, **values)
    return re.sub(r"\n{3,}", "\n\n", text)


def _cell(text: object) -> str:
    """A text that may stand in a cell of a Markdown table."""
    return one_line(text).replace("|", "\\|").replace("<", "&lt;")
