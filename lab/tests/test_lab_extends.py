# SPDX-License-Identifier: Apache-2.0
"""`extends`: what a file takes from its base, what it puts in its place, and which file an error names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fairlane_lab.definition.expansion import expand
from fairlane_lab.definition.loading import Definition, load
from fairlane_lab.problems import ExperimentError
from lab_command import lab
from test_lab_definition import FILE

OWN = 'name = "own"\nextends = "small"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(FILE)
    return tmp_path


def own(folder: Path, text: str, name: str = "own") -> Definition:
    (folder / f"{name}.toml").write_text(text)
    return load(str(folder / f"{name}.toml"))


def refusal(folder: Path, text: str) -> list[str]:
    with pytest.raises(ExperimentError) as caught:
        own(folder, text)
    return str(caught.value).splitlines()


def test_what_a_file_does_not_say_its_base_does(folder: Path) -> None:
    made = own(folder, OWN)
    assert [each.point for each in expand(made)] == [each.point for each in expand(load(str(folder / "small.toml")))]
    assert made.source.files[1:] == (folder / "small.toml",)


def test_tables_are_merged_and_arrays_replaced(folder: Path) -> None:
    made = own(
        folder,
        f'{OWN}run.repeats = 5\nmininet.only = {{ threshold = [5] }}\n[[cases]]\nlabel = "one"\nrate_bps = 9_000_000\ndelay_ms = 1\n',
    )
    assert (made.experiment.run["duration_s"], made.experiment.run["repeats"]) == (20, 5)
    assert [case["label"] for case in made.experiment.cases] == ["one"]
    assert made.experiment.mininet.only == {"threshold": [5]}


def test_a_table_changes_the_entries_of_an_array_by_their_names(folder: Path) -> None:
    made = own(
        folder, f'{OWN}flows.vegas.connections = 7\ncases.fast.rate_bps = 5_000_000\nplots.fairness.title = "F"\n'
    )
    assert [(flow["name"], flow.get("connections")) for flow in made.experiment.flows] == [("reno", None), ("vegas", 7)]
    assert [case["rate_bps"] for case in made.experiment.cases] == [1_000_000, 5_000_000]
    assert made.experiment.plots[0].title == "F"


def test_entries_are_appended_to_the_base_s(folder: Path) -> None:
    made = own(
        folder, f'{OWN}[[append.notes]]\ntext = "why"\n[[append.expect]]\ntext = "b"\nmetric = "jain"\nmin = 0\n'
    )
    assert [each.text for each in made.experiment.expect] == ["something", "b"]
    assert [note.text for note in made.experiment.notes] == ["why"]


def test_a_base_may_lie_elsewhere_extend_another_and_lack_what_an_experiment_has(folder: Path) -> None:
    (folder / "base").mkdir()
    (folder / "base" / "short.toml").write_text('extends = "../small.toml"\nrun.duration_s = 12\n')
    made = own(folder, 'name = "own"\nextends = "base/short"\n')
    assert made.experiment.run["duration_s"] == 12
    assert [path.name for path in made.source.files[1:]] == ["short.toml", "small.toml"]


def test_an_experiment_of_the_tree_may_be_extended_from_anywhere(folder: Path) -> None:
    made = own(folder, 'name = "own"\nextends = "qthresh-table1"\nrun.repeats = 2\n')
    assert len(expand(made)) == 8


def test_the_result_means_the_same_as_one_file_that_says_it_all(folder: Path) -> None:
    whole = own(folder, FILE.replace('"small"', '"own"').replace("repeats = 2", "repeats = 4"))
    assert own(folder, f"{OWN}run.repeats = 4\n").sha256 == whole.sha256


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "own"\nextends = "smal"\n', "own.toml: extends: there is no experiment file 'smal'. Did you mean 'small'?"),
        ('name = "own"\nextends = 3\n', "own.toml: extends: got 3; it must be the name or the path of a file"),
        ('name = "own"\nextends = "own"\n', "own.toml: extends: goes round in a circle: own.toml → own.toml"),
        (f'{OWN}flows.x.weight = 2\n', "own.toml: flows.x: there is no entry of the base 'x'. There are: reno, vegas"),
        (f'{OWN}flows.reno = 2\n', "own.toml: flows.reno: got 2; it must be a table"),
        (f'{OWN}append.run = 2\n', "own.toml: append.run: only an array is added to an array"),
        ('name = "own"\nappend.notes = []\n', "own.toml: append: adds to what a base has: it needs extends"),
        (f'{OWN}flows.reno.variant = "vages"\n', "own.toml: flows[0].variant: there is no variant 'vages'"),
        (f'{OWN}run.repeat = 2\n', "own.toml: run.repeat: there is no key 'repeat'"),
        (f'{OWN}params.sender = "vages"\nsets.sender = "flows.vegas.variant"\n', "own.toml: flows[1].variant: there is no variant 'vages'"),
        (f'{OWN}params.sender = "vages"\nsets.sender = ["flows.r*.variant"]\n', "own.toml: flows[0].variant: there is no variant 'vages'"),
        (f'{OWN}cases.slow.rate_bps = -4\n', 'own.toml: topology.links.s1-s2.rate_bps: '),
        (f'{OWN}params.duration_s = -1\n', "own.toml: run.duration_s: got -1"),
        ('extends = "small"\n', "own.toml: name: is missing"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_file_and_key(folder: Path, text: str, message: str) -> None:
    found = refusal(folder, text)
    assert any(line.startswith(message) for line in found), found


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('variant = "vegas"', 'variant = "vages"', "small.toml: flows[1].variant: there is no variant 'vages'"),
        ("duration_s = 20", "durations_s = 20", "small.toml: run.durations_s: there is no key"),
        ("rate_bps = 4_000_000", "rate_bps = -4", "small.toml: topology.links.s1-s2.rate_bps: "),
        ("min = 0.5", "", "small.toml: expect[0]: says neither min nor max"),
        ("duration_s = 20", "duration_s = ", "small.toml: not TOML: line"),
        ("[params]", 'extends = "own"\n[params]', "small.toml: extends: goes round in a circle: own.toml → small.toml → own.toml"),
    ],
)  # fmt: skip
def test_a_mistake_of_the_base_names_the_base(folder: Path, old: str, new: str, message: str) -> None:
    (folder / "small.toml").write_text(FILE.replace(old, new, 1).replace("[params]", "[params]", 1))
    if new.startswith("extends"):
        (folder / "small.toml").write_text(f'extends = "own"\n{FILE}')
    found = refusal(folder, OWN)
    assert any(line.startswith(message) for line in found), found


def test_numbers_of_a_base_may_be_of_points_that_others_have(folder: Path) -> None:
    numbers = "[[paper_numbers]]\nwhere = { threshold = 19 }\nvalues = { fairness = 0.9 }\n"
    assert "there is no value 19" in refusal(folder, OWN + numbers.replace("[[paper", "[[append.paper"))[0]
    (folder / "small.toml").write_text(FILE + numbers)
    assert len(own(folder, OWN).experiment.paper_numbers) == 1


def test_show_tells_the_whole_definition_and_its_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    own(folder, f"{OWN}run.repeats = 3\n")
    text = lab("show", "own.toml").output
    assert "(own.toml → small.toml)" in text
    assert "6 points, 18 runs of 20 s" in text
    shown = json.loads(lab("show", "own.toml", "--json").stdout)
    assert (shown["run"]["repeats"], shown["run"]["duration_s"]) == (3, 20)
