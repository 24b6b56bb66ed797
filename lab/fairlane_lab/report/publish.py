# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Pages in Markdown from archived runs: those of docs/results, one a question, the claims of the papers first; and those of one's own run folders."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib.pyplot as plt
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from fairlane_lab.definition.extend import read_as
from fairlane_lab.definition.names import RUNTIMES
from fairlane_lab.definition.strict import Strict
from fairlane_lab.paths import RESULTS_DATA
from fairlane_lab.report import labels
from fairlane_lab.report.archive import archive_runs, archived_definitions, digest, open_measured
from fairlane_lab.report.differences import numbers_of_paper
from fairlane_lab.report.figures import draw, draw_ratios, save
from fairlane_lab.report.judged import STATES, ClaimRow, Sentence, claim_rows, sentences
from fairlane_lab.report.section import PLOTS, TABLES, Section, changes_csv, one_line, to_csv

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
    states = dict.fromkeys(["met", "not met", *(each.state for row in claims for each in row.answers.values())])
    index = _render(
        "index.md.j2",
        claims=claims,
        states=states,
        worst=STATES[::-1],
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
    environment.filters.update({"runtime": _runtime, "cell": _cell, "words": one_line})
    text = environment.get_template(template).render(runtimes=RUNTIMES, rows_shown=ROWS_SHOWN, **values)
    return re.sub(r"\n{3,}", "\n\n", text)


def _runtime(name: str) -> str:
    """As a reader sees it."""
    return labels.value_label("runtime", name)


def _cell(text: object) -> str:
    """A text that may stand in a cell of a Markdown table."""
    return one_line(text).replace("|", "\\|").replace("<", "&lt;")
