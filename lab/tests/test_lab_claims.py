# SPDX-License-Identifier: Apache-2.0
"""lab/claims.toml: what the papers claim, judged by experiments; the table of answers; the history of bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fairlane_lab.cli.tables import verdict_lines
from fairlane_lab.definition import loading
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.extend import read_source, shown
from fairlane_lab.definition.judging import (
    Claim,
    ClaimBound,
    Expectation,
    PaperFigure,
    Relative,
    numbers_of,
    read_claims,
)
from fairlane_lab.definition.loading import load, load_text
from fairlane_lab.paths import EXPERIMENTS, RESULTS_PAGES
from fairlane_lab.problems import ExperimentError
from fairlane_lab.report.archive import archive_run, open_measured
from fairlane_lab.report.judged import Answer, Judged, claim_rows, sentences
from fairlane_lab.report.judged import judge as judged_bounds
from fairlane_lab.report.publish import write_pages
from fairlane_lab.results.verdicts import PointRuns, Verdict, judge
from lab_command import lab
from report_folders import make_folder

CLAIM = """
[[claims]]
id = "Q1"
paper = "Qthresh"
where = "Table 1"
sentence = "Vegas gets little"
kind = "shape"
bound = "it falls"
day = 2026-11-26
assumption = "none"
experiment = "qthresh-table1"
expect = [{ metric = "fairness", max = 1.0, steps = "threshold", where = { threshold = [1, 2, 4] } }]
"""


def read(path: Path, text: str) -> tuple[Claim, ...]:
    path.write_text(text)
    return read_claims(path)


def test_the_46_claims_are_all_there() -> None:
    ids = [claim.id for claim in read_claims()]
    wanted = {"Q": 13, "B": 5, "G": 12, "E": 8, "F": 8}
    assert ids == [f"{paper}{number}" for paper, count in wanted.items() for number in range(1, count + 1)]


def test_what_is_equal_meets_no_direction() -> None:
    for claim in read_claims():
        if claim.kind == "direction":
            beyond = [bound for bound in claim.bounds() if (bound.min or 0) > 1 or (bound.max or 2) < 1]
            assert beyond, claim.id


class _Anything(dict[str, Any]):
    """A row in which everything was measured."""

    def get(self, key: str, default: Any = None) -> Any:
        return default if key == "repeat" else 1.0


@pytest.mark.parametrize("name", sorted({bound.experiment for claim in read_claims() for bound in claim.bounds()}))
def test_every_bound_of_a_claim_has_points_and_what_they_are_relative_to(name: str) -> None:
    """A condition that no point of the experiment satisfies would leave a claim `not run` for ever."""
    definition = load(name)
    bounds = [each for each in definition.experiment.expect if isinstance(each, ClaimBound)]
    assert bounds
    points: dict[str, PointRuns] = {}
    for scenario in expand(definition, Selection(runtime="sim", repeats=1)):
        points[scenario.point] = PointRuns(scenario.point, scenario.params, [_Anything()])
    without = [verdict.text for verdict in judge(bounds, list(points.values()), "sim") if verdict.state == "no data"]
    assert without == []


def test_steps_metrics_and_references_are_bounds_of_their_own(tmp_path: Path) -> None:
    (claim,) = read(tmp_path / "steps.toml", CLAIM)
    assert [(bound.where, bound.relative_to) for bound in claim.bounds()] == [
        ({"threshold": 2}, {"threshold": 1}),
        ({"threshold": 4}, {"threshold": 2}),
    ]
    several = 'expect = [{ metrics = ["fairness", "jain"], min = 1, beside = [{ sender = "a" }, { sender = "b" }] }]'
    (claim,) = read(tmp_path / "several.toml", CLAIM[: CLAIM.index("expect")] + several)
    assert [(bound.metric, bound.relative_to["sender"]) for bound in claim.bounds()] == [
        ("fairness", "a"),
        ("fairness", "b"),
        ("jain", "a"),
        ("jain", "b"),
    ]
    assert len({bound.text for bound in claim.bounds()}) == 2, "another metric is another line of the table"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('kind = "shape"', 'kind = "guess"', "claims[0].kind: got 'guess'; allowed: 'direction', 'size' or 'shape'"),
        ('sentence = "Vegas gets little"\n', "", "claims[0].sentence: is missing"),
        ("threshold = [1, 2, 4]", "threshold = 4", "steps 'threshold': where.threshold has to be a list of two values"),
        ("max = 1.0", "bound = 1.0", "claims[0].expect[0].bound: there is no key 'bound'. There are: text, metric"),
        ("max = 1.0", "min = 2, max = 1.0", "min 2 is above max 1"),
        ('metric = "fairness"', 'metric = "jain", metrics = ["jain"]', "needs metric, or metrics"),
        ("expect = ", "# ", "has neither expect nor lacks"),
        ("[[claims]]", CLAIM + "[[claims]]", "the same id twice: Q1"),
        ("[[claims]]", "[[claims]", "line 2"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_with_its_place(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = tmp_path / "claims.toml"
    with pytest.raises(ExperimentError) as error:
        read(path, CLAIM.replace(old, new, 1))
    assert str(error.value).startswith(shown(path))
    assert problem in str(error.value)


def test_a_name_that_the_experiment_does_not_have_is_an_error_of_the_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = ClaimBound(text="x", metric="speed", min=1, where={"case": "9M"}, claim="Q1", experiment="qthresh-table1")

    def bounds_of(_name: str) -> list[ClaimBound]:
        return [bound]

    monkeypatch.setattr(loading, "bounds_of", bounds_of)
    source = read_source(EXPERIMENTS / "qthresh-table1.toml")
    with pytest.raises(ExperimentError) as error:
        loading.make_definition(source)
    text = str(error.value)
    assert "lab/claims.toml: Q1.metric: there is no metric 'speed'" in text
    assert "lab/claims.toml: Q1.where: case: there is no value '9M'" in text


def test_an_experiment_elsewhere_is_not_asked_what_the_papers_claim() -> None:
    text = (EXPERIMENTS / "gfr-table2.toml").read_text()
    assert any(isinstance(each, ClaimBound) for each in load("gfr-table2").experiment.expect)
    copied = load_text(text.replace("base/gfr", str(EXPERIMENTS / "base" / "gfr")), "gfr-table2.toml")
    assert not any(isinstance(each, ClaimBound) for each in copied.experiment.expect)


def judged(claim: str, experiment: str, runtime: str, state: str, value: float | None = None, **more: Any) -> Judged:
    """A bound of a claim, at least 90 %."""
    bound: dict[str, Any] = {
        "text": claim,
        "metric": "utilisation",
        "min": 0.9,
        "max": None,
        "relative_to": {},
        "per": {},
        "points": [],
    }
    fields: dict[str, Any] = {**bound, "within": None, "runs": 20, "state": state, "value": value, **more}
    verdict = Verdict(**fields)
    asked = ClaimBound(text=claim, metric=verdict.metric, min=0.9, claim=claim, experiment=experiment)
    return Judged(experiment, runtime, "", verdict, asked)


def answers(*found: tuple[str, str, float | None], lacks: str = "", **more: Any) -> Mapping[str, Answer]:
    """What the row of claim G3 says of bounds of its experiment: runtime, state, value."""
    bounds = [judged("G3", "gfr-table2", *each, **more) for each in found]
    (asked,) = [each for each in read_claims() if each.id == "G3"]
    return claim_rows(bounds, [asked.model_copy(update={"lacks": lacks})])[0].answers


def test_a_claim_is_met_when_each_of_its_bounds_is() -> None:
    assert str(answers(("sim", "met", 0.99), ("sim", "met", 0.95))["sim"]) == "met: 95.0 %, n = 20; 2 bounds"
    found = answers(("sim", "met", 0.99), ("sim", "not met", 0.8), ("kernel", "met", 0.99), ("kernel", "no data", None))
    assert str(found["sim"]) == "not met: 80.0 %, n = 20; 1 of 2 met"
    assert str(found["kernel"]) == "not run: 1 of 1 bounds met", "a bound without data"
    assert str(found["mininet"]) == "not run"
    assert str(answers(("sim", "met", 0.99), lo=0.98, hi=0.995)["sim"]) == "met: 99.0 % (98.0 to 99.5), n = 20"
    lacking = answers(("sim", "met", 0.99), ("kernel", "not met", 0.8), lacks="BW_est")
    assert (lacking["sim"].state, lacking["kernel"].state) == ("not run", "not met")
    nearest = judged("G3", "gfr-table2", "sim", "met", 0.91)
    other = judged("G3", "gfr-table2", "sim", "met", 1.0, metric="jain", max=1.2)
    (row,) = [row for row in claim_rows([nearest, other]) if row.claim.id == "G3"]
    assert row.answers["sim"].at == "utilisation, at least 90 %", "which of several bounds decides"
    (row,) = [row for row in claim_rows([replace(nearest, day="2026-11-25")]) if row.claim.id == "G3"]
    assert str(row.answers["sim"]).startswith("met†: 91.0 %"), "the runs are older than the bound"
    assert answers(("sim", "met", 0.99), ("sim", "undecided", 0.95))["sim"].state == "undecided"


@pytest.mark.parametrize("per", [(), ("case",)])
@pytest.mark.parametrize(("value", "state"), [(1.0, "not run"), (3.0, "not met")])
def test_a_point_without_data_leaves_a_sentence_open_unless_another_one_refutes_it(
    per: tuple[str, ...], value: float, state: str
) -> None:
    asked = Expectation(text="t", metric="utilisation", max=2, per=per)
    measured = [
        PointRuns(name, {"case": name}, [{"repeat": repeat, "utilisation": each} for repeat in range(20)])
        for name, each in (("a", value), ("b", None))
    ]
    verdicts = judge([asked], measured, "sim")
    (row,) = sentences(Judged("x", "sim", "", verdict, asked) for verdict in verdicts)
    assert row.state == state
    assert not any(verdict.within for verdict in verdicts if len(verdict.points) == 2), "--check fails"
    if per:
        return
    (line,) = verdict_lines(verdicts)
    assert line.endswith("(other points were not measured)") == (state == "not run")
    mean = asked.model_copy(update={"over": "case", "pick": "mean"})
    assert judge([mean], measured, "sim")[0].state == "no data", "a mean over one point of two"


def test_of_bounds_with_one_text_each_verdict_has_its_own() -> None:
    asked = [
        Expectation(
            text="it nears ORG", metric="relative_time", min=0.97, relative_to={"file_bytes": size}, why=f"{size}"
        )
        for size in (10_240, 20_480)
    ]
    definition = load("fasttcp-fig3")
    definition = replace(definition, experiment=definition.experiment.model_copy(update={"expect": (*asked,)}))
    measured = open_measured(RESULTS_PAGES / "data", definition)
    run, verdict = measured.runs[0], measured.runs[0].verdicts[0]
    verdicts = [
        replace(verdict, text="it nears ORG", min=0.97, max=None, relative_to=each.relative_to) for each in asked
    ]
    found = judged_bounds(replace(measured, runs=(run.model_copy(update={"verdicts": verdicts}),)))
    assert [each.why for each in found] == ["10240", "20480"]


def test_a_claim_over_two_experiments_needs_both() -> None:
    claim = next(each for each in read_claims() if each.id == "G1")
    two = claim.model_copy(
        update={"expect": (*claim.expect, claim.expect[0].model_copy(update={"experiment": "gfr-table3"}))}
    )

    def state(*names: str) -> str:
        bounds = [judged("G1", name, "sim", "met", 1.0) for name in names]
        return claim_rows(bounds, [two])[0].answers["sim"].state

    assert state("gfr-table2") == "not run"
    assert state("gfr-table2", "gfr-table3") == "met"


def test_the_table_and_its_json_come_from_a_run_folder(tmp_path: Path) -> None:
    text = (EXPERIMENTS / "gfr-table2.toml").read_text().replace("base/gfr", str(EXPERIMENTS / "base" / "gfr"))
    folder = make_folder(tmp_path / "run", text, repeats=7)
    done = lab("claims", str(folder), "--json")
    assert done.exit_code == 0, done.output
    claims = {claim["id"]: claim for claim in json.loads(done.stdout)["claims"]}
    assert len(claims) == 46
    assert claims["Q1"]["answers"]["sim"]["state"] == "not run"
    assert claims["G1"]["answers"]["sim"] == {**claims["G1"]["answers"]["sim"], "runs": 7, "of": 2}
    assert claims["G1"]["day"] == "2026-11-26"
    assert claims["G1"]["changed"][0]["from"] == "proposed ≥ 0.997"
    shown = lab("claims", str(folder))
    assert all(word in shown.stdout for word in ("G12", "FastTCP", "n = 7"))


def test_a_point_may_be_picked_by_another_metric_than_the_one_that_is_judged() -> None:
    rows = [
        {"fairness": 0.2, "utilisation": 1.0},
        {"fairness": 0.9, "utilisation": 0.5},
        {"fairness": 0.1, "utilisation": 1.0},
    ]
    points = [PointRuns(str(place), {"threshold": place}, [row] * 20) for place, row in enumerate(rows)]

    def ask(metric: str, least: float) -> Verdict:
        asked = Expectation(text="", metric=metric, min=least, over="threshold", by="fairness", per=())
        return judge([asked], points, "sim")[0]

    use, best = ask("utilisation", 0.98), ask("threshold", 0)
    assert (use.value, use.state, best.value) == (0.5, "not met", 1.0)
    assert ask("jain", 1).state == "no data", "what was not measured is not missed"


def test_a_grid_of_points_takes_few_lines_of_the_terminal() -> None:
    points = [PointRuns(f"threshold={place}", {"threshold": place}, [{"fairness": 0.9}] * 20) for place in range(50)]
    verdicts = judge([Expectation(text="fair", metric="fairness", min=0.5)], points, "sim")
    lines = verdict_lines(verdicts)
    assert len(lines) == 4
    assert "fair · threshold=0: 90.0 %" in lines[0]
    assert lines[-1].endswith("fair · 47 more")


def test_the_numbers_of_the_papers_tables_are_those_of_their_points() -> None:
    numbers = {tuple(each.where.values()): each.values for each in load("gfr-table3").experiment.paper_numbers}
    assert len(numbers) == 10
    found = numbers[500, "threshold WRR"]
    assert found == {"jain": 0.963026, "goodput_share": pytest.approx(45.14 / 46.95)}
    shares = [each.values["fairness"] for each in load("qthresh-table1").experiment.paper_numbers[:4]]
    assert shares == [0.12, 0.1126, 0.1125, 0.1041]


@pytest.mark.parametrize(
    ("paper", "figure", "problem"),
    [
        ("qtresh", "Table 1", "there is no paper 'qtresh'. Did you mean 'qthresh'?"),
        ("qthresh", "Table 9", "there is no figure 'Table 9'. Did you mean 'Table 2'?"),
    ],
)
def test_a_figure_that_is_not_there_is_an_error(paper: str, figure: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        numbers_of(PaperFigure(paper=paper, figure=figure))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("Table 1,a,1,jain,much,,,table", "x.csv, line 2: y: Input should be a valid number"),
        ("Table 1,a,1,jain,1,,furlongs,table", "x.csv, line 2: unit: Input should be"),
        (
            "Table 1,a,1,jain,1,,,guessed",
            "x.csv, line 2: how: Input should be 'table', 'text' or 'read off the figure'",
        ),
    ],
)
def test_a_line_of_a_paper_s_file_that_is_wrong_is_named(tmp_path: Path, row: str, problem: str) -> None:
    (tmp_path / "x.csv").write_text(f"figure,series,x,metric,y,of,unit,how\n{row}\n")
    with pytest.raises(ValueError, match=re.escape(problem)):
        numbers_of(PaperFigure(paper="x", figure="Table 1"), tmp_path)


def test_what_a_bound_was_before_stands_beside_its_page(tmp_path: Path) -> None:
    text = (Path(__file__).parent / "report_experiments" / "qthresh-table1.toml").read_text()
    history = 'changed = [{ day = 2026-11-21, from = "at least 0.9", to = "at least 0.8", why = "it was missed" }]'
    text = text.replace("[[expect]]\n", f"[[expect]]\n{history}\n", 1)
    name = "changed-bounds"
    text = text.replace('name = "qthresh-table1"', f'name = "{name}"')
    archive_run(make_folder(tmp_path / "run", text, repeats=7), tmp_path / "pages" / "data")
    page = tmp_path / "pages" / f"{name}.md"
    write_pages(tmp_path / "pages")
    tables = tmp_path / "pages" / "tables"
    assert f"[changes of bounds](tables/{name}.changes.csv)" in page.read_text()
    assert ",2026-11-21,at least 0.9,at least 0.8,it was missed\n" in (tables / f"{name}.changes.csv").read_text()
    assert "paper" not in (tmp_path / "pages" / "index.md").read_text().splitlines()[1], (
        "none of its experiments is there"
    )
    index = (RESULTS_PAGES / "index.md").read_text()
    assert "| not run |" in index
    assert "(tables/claims.changes.csv)" in index
    assert "Q1,2026-11-26,6 to 17 %,5 to 20 %," in (RESULTS_PAGES / "tables" / "claims.changes.csv").read_text()


def test_steps_of_a_relative_column_are_relative_to_the_step_before() -> None:
    """ENA's gain at one error rate beside its gain at another, not beside 1."""
    gains = {1e-6: 4.0, 1e-5: 2.0}
    rows = {ber: [{"transfer_bps": gain, "relative_goodput": gain}] * 20 for ber, gain in gains.items()}
    points = [PointRuns(f"ber={ber}", {"ber": ber, "sender": "ena"}, found) for ber, found in rows.items()]
    base = [
        PointRuns(f"ber={ber}", {"ber": ber, "sender": "base"}, [{"transfer_bps": 1.0, "relative_goodput": 1.0}] * 20)
        for ber in gains
    ]
    named = [Relative(name="relative_goodput", metric="transfer_bps", to={"sender": "base"})]
    where: dict[str, Any] = {"ber": 1e-5, "sender": "ena"}
    asked = Expectation(text="", metric="relative_goodput", min=1.0, where=where, relative_to={"ber": 1e-6})
    (verdict,) = judge([asked], [*points, *base], "sim", named)
    assert (verdict.value, verdict.state) == (0.5, "not met")
