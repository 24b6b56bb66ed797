# SPDX-License-Identifier: Apache-2.0
"""Experiment files: every file of ours is sound, errors tell place and allowed values, expansion is fixed and readable."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.extend import experiment_names
from fairlane_lab.definition.loading import Definition, load, load_text
from fairlane_lab.definition.strict import Between, matches
from fairlane_lab.paths import REPOSITORY
from fairlane_lab.problems import ExperimentError

FILE = """
name = "small"
title = "Small"
paper = "Chae and Choi 2004"
reproduces = "nothing"
what = "A small experiment."
runtimes = ["sim", "mininet"]
[params]
buffer_packets = 50
[[cases]]
label = "slow"
rate_bps = 1_000_000
delay_ms = 8
[[cases]]
label = "fast"
rate_bps = 4_000_000
delay_ms = 2
[sweep]
threshold = [4, 5, 6]
[sets]
rate_bps = "topology.links.s1-s2.rate_bps"
delay_ms = "topology.links.s1-s2.delay_ms"
buffer_packets = "topology.ports.s1-p3.queue_packets"
[topology]
base = "dumbbell"
links."h*" = { rate_bps = 10_000_000, delay_ms = 1.5 }
[[flows]]
name = "reno"
sender = "h1"
receiver = "h3"
[[flows]]
name = "vegas"
sender = "h2"
receiver = "h3"
variant = "vegas"
connections = 2
[control]
scheme = "qthresh"
[run]
duration_s = 20
warmup_s = 5
repeats = 2
series_repeats = 1
[run.starts]
offsets_s = [-0.5, 0.5]
[mininet]
repeats = 1
only = { threshold = [4, 6] }
[[expect]]
text = "something"
metric = "fairness"
min = 0.5
[[plots]]
kind = "lines"
name = "fairness"
title = "Fairness"
x = "threshold"
y = "fairness"
by = "case"
"""


EXACT = ("[run]\n", '[run]\ndraws.fixed = "numbers of the file are looked at"\n')


def definition(*changes: tuple[str, str]) -> Definition:
    text = FILE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return load_text(text, "small.toml", "small")


def problems(*changes: tuple[str, str]) -> Sequence[str]:
    with pytest.raises(ExperimentError) as caught:
        definition(*changes)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("name", experiment_names())
def test_every_experiment_of_ours_is_sound_in_each_of_its_runtimes(name: str) -> None:
    experiment = load(name)
    for runtime in experiment.experiment.runtimes:
        for quick in (False, True):
            assert expand(experiment, Selection(runtime=runtime, quick=quick))


def test_points_are_cases_times_sweep_in_the_file_s_order() -> None:
    scenarios = expand(definition())
    assert list(dict.fromkeys(each.point for each in scenarios)) == [
        "slow/threshold=4", "slow/threshold=5", "slow/threshold=6", "fast/threshold=4", "fast/threshold=5", "fast/threshold=6",
    ]  # fmt: skip
    assert [each.repeat for each in scenarios[:4]] == [0, 1, 0, 1]
    assert dict(scenarios[-1].params) == {
        "case": "fast", "scheme": "qthresh", "threshold": 6, "rate_bps": 4_000_000, "delay_ms": 2, "buffer_packets": 50, "flows": 3,
        "offset_s": 0.5, "duration_s": 20.0, "warmup_s": 5.0,
    }  # fmt: skip


def test_parameters_set_the_keys_that_the_file_names() -> None:
    slow = expand(definition(EXACT))[0]
    links = {(link["a"], link["b"]): link for link in slow.topology["links"]}
    assert links["s1-p3", "s2-p1"] == {"a": "s1-p3", "b": "s2-p1", "bandwidth": 1_000_000, "delay": 8000}
    assert links["h1", "s1-p1"]["delay"] == 1500
    assert slow.topology["switches"]["s1"]["ports"]["3"]["queue_packets"] == 50
    of_a_plot = (
        'kind = "lines"',
        'kind = "series"\nname = "w"\ntitle = "W"\nmetric = "cwnd_packets"\n[[plots]]\nkind = "lines"',
    )
    of_its_second = (of_a_plot[0], of_a_plot[1].replace('"w"', '"w"\nrepeat = 1', 1))
    for changes, kept in (((), [0]), ((of_a_plot,), [0]), ((of_its_second,), [1])):
        without = (("series_repeats = 1\n", ""), *changes) if changes else ()
        assert [each.repeat for each in expand(definition(*without))[:2] if each.series] == kept


def test_a_negative_offset_starts_the_others_later() -> None:
    first, second = expand(definition(EXACT))[:2]
    assert [flow.start_s for flow in first.flows] == [0.5, 0.0]
    assert [flow.start_s for flow in second.flows] == [0.0, 0.5]


@pytest.mark.parametrize("starts", ["offsets_s = [-0.5, 0.5]", "jitter_s = 1.0"])
def test_a_flow_with_no_connections_is_not_at_that_point(starts: str) -> None:
    case = 'label = "fast"\n'
    runs = expand(
        definition(
            ("buffer_packets = 50", "buffer_packets = 50\nflows_2 = 1"),
            (case, case + "flows_2 = 0\n"),
            ("[sets]", '[sets]\nflows_2 = "flows.vegas.connections"'),
            ("offsets_s = [-0.5, 0.5]", starts),
        )
    )
    names = {(run.params["case"], run.params["flows"]): [flow.name for flow in run.flows] for run in runs}
    assert names == {("slow", 2): ["reno", "vegas"], ("fast", 1): ["reno"]}


def test_a_point_has_at_least_one_connection() -> None:
    assert "at least one must have 1 or more" in str(
        problems(('receiver = "h3"', 'receiver = "h3"\nconnections = 0'), ("connections = 2", "connections = 0"))
    )


def test_jitter_starts_each_connection_at_its_own_time_alike_in_all_points_of_a_repeat() -> None:
    jittered = expand(definition(("offsets_s = [-0.5, 0.5]", "jitter_s = 1.0")))
    assert [flow.name for flow in jittered[0].flows] == ["reno", "vegas-1", "vegas-2"]
    starts = [tuple(flow.start_s for flow in each.flows) for each in jittered]
    assert starts[0] == starts[2] == starts[-2]
    assert starts[0] != starts[1]
    assert all(0 <= start < 1 for start in starts[0])
    assert len(set(starts[0])) == 3


def test_seeds_depend_on_repeat_and_base_seed_alone() -> None:
    seeds = {(each.point, each.repeat): each.seed for each in expand(definition())}
    assert seeds["slow/threshold=4", 0] == seeds["slow/threshold=5", 0]  # the same world for each threshold: pairs
    assert seeds["slow/threshold=4", 0] == seeds["fast/threshold=4", 0] != seeds["slow/threshold=4", 1]
    other = expand(definition(), Selection(seed=2))[0].seed
    assert other != seeds["slow/threshold=4", 0]
    assert seeds["slow/threshold=4", 0] == 1034445887  # fixed for ever: results of a seed must not change


def test_mininet_has_its_own_repeats_and_points() -> None:
    scenarios = expand(definition(), Selection(runtime="mininet"))
    assert [each.point for each in scenarios] == ["slow/threshold=4", "slow/threshold=6", "fast/threshold=4", "fast/threshold=6"]  # fmt: skip


def test_the_kernel_may_run_some_of_the_simulator_s_points_which_changes_no_run() -> None:
    some = definition(("[mininet]", "[kernel]\nrepeats = 3\nonly = { threshold = [5] }\n[mininet]"))
    scenarios = expand(some, Selection(runtime="kernel"))
    assert [each.point for each in scenarios] == ["slow/threshold=5"] * 3 + ["fast/threshold=5"] * 3
    assert expand(some) == expand(definition())
    assert some.sha256 == definition().sha256
    (told,) = problems(("[mininet]", "[kernel]\nduration_s = 3\n[mininet]"))
    assert "kernel.duration_s" in told


def test_what_only_simulated_hosts_are_told_is_not_for_linux() -> None:
    one = definition(("[mininet]", "[sim.tcp]\ntick_s = 0.01\n[mininet]"))
    ticks = {runtime: expand(one, Selection(runtime=runtime))[0].tcp.tick_s for runtime in ("sim", "kernel", "mininet")}
    assert ticks == {"sim": 0.01, "kernel": 0, "mininet": 0}


def test_a_selection_overrides_a_sweep_restricts_cases_and_changes_the_run() -> None:
    values = {"threshold": (9, "auto"), "case": ("fast",), "duration_s": (10,), "buffer_packets": (20,)}
    scenarios = expand(definition(), Selection(values=values, repeats=1))
    assert [each.point for each in scenarios] == ["fast/threshold=9", "fast/threshold=auto"]
    assert scenarios[1].control.threshold == "auto"
    assert scenarios[0].duration_s == 10
    assert scenarios[0].params["buffer_packets"] == 20


def test_a_sweep_of_tables_sets_parameters_that_go_together() -> None:
    tables = 'kind = [{ scheme = "drop_tail", label = "drop-tail" }, { scheme = "qthresh", threshold = 6 }]'
    made = definition(
        ("threshold = [4, 5, 6]", tables), ('scheme = "qthresh"\n', ""),
        ("buffer_packets = 50", 'buffer_packets = 50\nthreshold = "auto"'), ("only = { threshold = [4, 6] }", 'only = { scheme = "qthresh" }'),
        ('x = "threshold"', 'x = "rate_bps"'),
    )  # fmt: skip
    scenarios = expand(made, Selection(repeats=1))
    assert [each.point for each in scenarios[:2]] == ["slow/drop-tail", "slow/scheme=qthresh,threshold=6"]
    assert [each.params["threshold"] for each in scenarios[:2]] == [None, 6]


def test_an_axis_called_control_gives_its_labels_as_a_parameter() -> None:
    made = load("qthresh-changes")
    assert [each.params["control"] for each in expand(made, Selection(repeats=1))] == [
        "drop-tail",
        "fixed",
        "model",
        "auto",
    ]
    only = expand(made, Selection(repeats=1, values={"control": ("auto",)}))
    assert [(each.point, each.control.threshold) for each in only] == [("auto", "auto")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('variant = "vegas"', 'variant = "vages"'), "small.toml: flows[1].variant: there is no variant 'vages'. Did you mean 'vegas'? There are: tahoe, reno, newreno, sack, vegas, "),
        (('sender = "h2"', 'sender = "h9"'), "small.toml: flows[1].sender: there is no host 'h9'. There are: h1, h2, h3"),
        (('links."h*"', 'links."s1-s3"'), "small.toml: topology.links.s1-s3: there is no link 's1-s3'. Did you mean 's1-s2'? There are: h1-s1, h2-s1, s1-s2, h3-s2"),
        (('ports.s1-p3', 'ports.s1-p9'), "small.toml: topology.ports.s1-p9: there is no switch port 's1-p9'. Did you mean 's1-p3'? There are: s1-p1, s1-p2, s1-p3, s2-p1, s2-p2"),
        (('base = "dumbbell"', 'base = "dumbbell"\nports."s1-p3" = { buffer = { bdp = 1 } }'), "small.toml: topology.ports.s1-p3: queue_packets and buffer both say how many packets may wait; allowed: one of them"),
        (('base = "dumbbell"', 'base = "dumbell"'), "small.toml: topology.base: there is no topology 'dumbell'. Did you mean 'dumbbell'?"),
        (('rate_bps = "topology.links', 'rate = "topology.links'), "small.toml: sets.rate: there is no parameter 'rate'. Did you mean 'rate_at'? There are: scheme, sender,"),
        (('rate_bps = "topology.links.s1-s2.rate_bps"\n', ""), "small.toml: sets.rate_bps: is missing: rate_bps is no key of control, tcp or run; say which keys it sets, such as flows.NAME.variant, or []"),
        (("[sets]", '[sets]\nthreshold = "flows.renno.connections"'), "small.toml: sets.threshold: there is no entry 'renno'. Did you mean 'reno'? There are: reno, vegas"),
        (("[sets]", '[sets]\nthreshold = "run"'), "small.toml: sets.threshold: run is a section; say which key of it"),
        (("[sets]", '[sets]\nthreshold = { "control.threshold" = 1e308 }'), "small.toml: sets.threshold: got 4, which times 1e+308 is no number"),
        (('name = "vegas"', f'name = "{"v" * 33}"\ngroup = "g"'), "small.toml: flows[1].name: 'vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv' has 33 characters; allowed: up to 32"),
        (("[sets]", '[sets]\nthreshold = "flows.reno"'), "small.toml: sets.threshold: reno: say which key of the entry"),
        (("[sets]", '[sets]\nthreshold = [["control.threshold"]]'), "small.toml: sets.threshold: got [['control.threshold']]; allowed: a key such as flows.NAME.variant, a list of keys, or a table"),
        (('scheme = "qthresh"', "qthresh = []"), "small.toml: control.qthresh: got []; allowed: a table"),
        (("[sets]", '[sets]\nthreshold = "run.repeats.x"'), "small.toml: sets.threshold: x is below 2, which is no table"),
        (('name = "vegas"', 'name = "reno"'), "small.toml: flows[1].name: 'reno' is the name of an earlier flow"),
        (('name = "reno"', 'name = "vegas-2"\ngroup = "reno"'), "small.toml: flows[1].name: 'vegas-2' is the name of an earlier flow"),
        (('name = "vegas"', 'name = "vegas"\nstart_s = 20\napp = { kind = "bytes", bytes = 1 }'), "small.toml: flows[1].start_s: 20 is not before the end, run.duration_s 20"),
        (("warmup_s = 5", "warmup_s = 5\nuntil_done = true"), "small.toml: run: until_done, warmup_s 5: the files may be finished by then; until_done needs warmup_s 0"),
        (("warmup_s = 5", "warmup_s = 25"), "small.toml: run: warmup_s 25 leaves nothing of duration_s 20 to measure"),
        (("repeats = 2", "repeat = 2"), "small.toml: run.repeat: there is no key 'repeat'. Did you mean 'repeats'? There are: duration_s, warmup_s, repeats, connections, starts, draws, sample_s, series_repeats"),
        (("rate_bps = 1_000_000", "rate_bps = -1"), "small.toml: topology.links.s1-s2.rate_bps: got -1; input should be greater than or equal to 0"),
        (("rate_bps = 1_000_000", ""), "small.toml: cases[0]: has no rate_bps, which other cases have"),
        (('label = "fast"', 'label = "slow"'), "small.toml: cases[1].label: 'slow' is the label of an earlier case"),
        (("threshold = [4, 5, 6]", "treshold = [4]"), "small.toml: sweep.treshold: there is no parameter 'treshold'. Did you mean 'threshold'?"),
        (("threshold = [4, 5, 6]", "threshold = [0, 4]"), "small.toml: control.threshold: got 0; allowed: packets from 1 to 65535, 'model' or 'auto'"),
        (('scheme = "qthresh"', 'scheme = "lanes"'), "small.toml: topology.ports.s1-p3: the port has 8 queues and the scheduler strict; lanes need at least 4 and drr or wrr"),
        (("duration_s = 20", 'duration_s = "20s"'), "small.toml: run.duration_s: got '20s'; allowed: a number of seconds"),
        (("connections = 2", 'app = "web"'), "small.toml: flows[1].app: got 'web'; allowed: a table"),
        (('scheme = "qthresh"', 'scheme = "red"'), "small.toml: control.scheme: got 'red'; allowed: 'drop_tail', 'qthresh' or 'lanes'"),
        (('metric = "fairness"', 'metric = "fairnes"'), "small.toml: expect[0].metric: there is no metric 'fairnes'. Did you mean 'fairness'?"),
        (('metric = "fairness"', 'metric = "goodput_bps[x]"'), "small.toml: expect[0].metric: there is no group of flows 'x'. There are: reno, vegas"),
        (("min = 0.5", ""), "small.toml: expect[0]: says neither min nor max"),
        (("min = 0.5", 'min = 0.5\nrelative_to = { scheme = "qthresh" }'), "small.toml: expect[0].relative_to: 3 points have these values and differ in threshold; allowed: values of one point"),
        (('x = "threshold"', 'x = "windows"'), "small.toml: plots[0].x: there is no parameter 'windows'."),
        (('kind = "lines"', 'kind = "pie"'), "small.toml: plots[0].kind: got 'pie'; allowed: "),
        (("only = { threshold = [4, 6] }", "only = { threshold = 7 }"), "small.toml: mininet.only: leaves no point"),
        (('["sim", "mininet"]', '["sim", "ns3"]'), "small.toml: runtimes[1]: got 'ns3'; allowed: 'sim', 'kernel' or 'mininet'"),
        (('name = "small"', 'name = "large"'), "small.toml: name: 'large' must be the file's name, 'small'"),
        (("connections = 2", 'app = { kind = "web", offered_bps = 1000, mean_bytes = 9, max_bytes = 9 }'), "small.toml: flows[1].app: offered_bps is of sizes whose mean is mean_bytes, and max_bytes makes it smaller: give arrivals_per_s"),
        (("connections = 2", 'app = { kind = "web" }'), "small.toml: flows[1].app: kind 'web' also needs arrivals_per_s, mean_bytes"),
        (("connections = 2", 'app = { kind = "greedy", bytes = 5 }'), "small.toml: flows[1].app: kind 'greedy' has no bytes; it has: nothing else"),
        (("[run]\n", "[run\n"), "small.toml: not TOML: "),
        (("[control]", '[[changes]]\nat_s = 30\nlink = "s1-s2"\ndelay_ms = 1\n[control]'), "small.toml: changes[0].at_s: 30 is not before the end, run.duration_s 20"),
        (("[control]", '[[changes]]\nat_s = 4\nlink = "s1-s2"\nspike_s = 2\n[control]'), "small.toml: changes[0].at_s: 4 is before run.warmup_s 5: a delay spike is measured from its start on"),
        (("[control]", '[[changes]]\nat_s = 13\nlink = "s1-s2"\nspike_s = 2.5\n[control]'), "small.toml: changes[0].spike_s: it ends at 15.5; allowed: up to 15, 5 before run.duration_s, so that the recovery is seen"),
        (("[control]", '[[changes]]\nat_s = 3\nlink = "s1-s2"\n[control]'), "small.toml: changes[0]: changes nothing; give one of preset, delay_ms, jitter_ms, "),
    ],
)  # fmt: skip
def test_an_error_names_file_key_what_was_given_and_what_is_allowed(change: tuple[str, str], message: str) -> None:
    assert any(message in line for line in problems(change)), problems(change)


def test_all_errors_are_told_at_once() -> None:
    found = problems(('variant = "vegas"', 'variant = "vages"'), ('sender = "h1"', 'sender = "h7"'))
    assert [line.split(": ")[1] for line in found] == ["flows[0].sender", "flows[1].variant"]


def test_what_there_is_to_choose_from_is_listed_once() -> None:
    assert problems(('sender = "h1"', 'sender = "h7"'), ('sender = "h2"', 'sender = "h9"')) == [
        "small.toml: flows[0].sender: there is no host 'h7'. There are: h1, h2, h3",
        "small.toml: flows[1].sender: there is no host 'h9'.",
    ]


def test_a_variant_of_the_simulator_alone_is_refused_where_mininet_runs_too() -> None:
    assert "there is no variant 'tahoe-classic'" in problems(('variant = "vegas"', 'variant = "tahoe-classic"'))[0]
    sim_only = definition(
        ('variant = "vegas"', 'variant = "tahoe-classic"'),
        ('["sim", "mininet"]', '["sim"]'),
    )
    assert expand(sim_only)[0].flows[1].variant == "tahoe-classic"


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(values={"treshold": (4,)}), "there is no parameter 'treshold'. Did you mean 'threshold'?"),
        (
            Selection(values={"case": ("slw",)}),
            "case: there is no value 'slw'. Did you mean 'slow'? There are: slow, fast",
        ),
        (Selection(values={"threshold": (0,)}), "control.threshold: got 0; allowed: packets from 1 to 65535"),
        (Selection(values={"rate_bps": (5,)}), "rate_bps: there is no value 5. There are: 1000000, 4000000"),
        (Selection(values={"duration_s": (0,)}), "run.duration_s: got 0; input should be greater than 0"),
        (Selection(values={"case": ("slow",), "rate_bps": (4_000_000,)}), "nothing is left to run"),
    ],
)
def test_a_selection_that_makes_no_sense_says_why(selection: Selection, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        expand(definition(), selection)
    assert message in str(caught.value)


def test_a_point_whose_case_gives_another_value_than_the_selection_is_left_out() -> None:
    made = definition(('label = "fast"', 'label = "fast"\nbuffer_packets = 20'))
    for packets, cases in ((20, {"slow", "fast"}), (30, {"slow"})):
        chosen = expand(made, Selection(values={"buffer_packets": (packets,)}))
        assert {each.params["case"] for each in chosen} == cases
        assert {each.params["buffer_packets"] for each in chosen} == {packets}


def test_an_unknown_experiment_is_told_with_the_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY / "docs" / "examples")
    with pytest.raises(ExperimentError, match=r"no experiment 'shares'\. Did you mean 'shares.toml'"):
        load("shares")
    with pytest.raises(ExperimentError, match=r"no experiment 'qthresh-tabel1'\. Did you mean 'qthresh-table1'"):
        load("qthresh-tabel1")


def test_the_hash_is_of_what_runs_not_of_how_it_is_told() -> None:
    plain = definition().sha256
    assert definition(("min = 0.5", "min = 0.6"), ('title = "Small"', 'title = "Tiny"')).sha256 == plain
    assert definition(("warmup_s = 5", "warmup_s = 6")).sha256 != plain


def test_conditions_are_values_lists_and_ranges() -> None:
    assert matches({"a": 1, "b": ["x", "y"], "c": Between(min=2)}, {"a": 1, "b": "y", "c": 2})
    assert not matches({"c": Between(max=2)}, {"c": "auto"})
    assert not matches({"d": 1}, {})


def test_a_port_has_the_scheduler_that_the_program_needs_unless_the_file_names_another() -> None:
    fq = (
        ("[sweep]", f'[sweep]\nprogram = ["qthresh", "fq_codel", "{REPOSITORY}/docs/examples/droptail/"]'),
        ("threshold = [4, 5, 6]\n", ""),
        ('scheme = "qthresh"\n', ""),
        ("only = { threshold = [4, 6] }", ""),
        ('x = "threshold"\n', 'x = "program"\n'),
    )
    runs = expand(definition(*fq, EXACT))
    ports = [one.topology["switches"]["s1"]["ports"]["3"] for one in runs]
    assert {(port.get("scheduler"), port.get("queues")) for port in ports} == {(None, None), ("fq", 1024)}
    assert [part.rpartition("_")[2] for part in runs[-1].point.split("/")] == ["fast", "droptail"]
    named = ("[[flows]]", 'ports."s1-p3" = { scheduler = "strict" }\n[[flows]]')
    assert "/switches/s1/ports/3/scheduler: strict; fq_codel needs fq" in problems(*fq, named)[0]


def test_quantities_that_the_point_decides_are_computed_from_it() -> None:
    made = definition(
        ('buffer_packets = "topology.ports.s1-p3.queue_packets"', 'buffer_packets = "topology.ports.s1-p3.buffer.packets"\nflows = "run.connections"'),
        ("buffer_packets = 50", "buffer_packets = 50\nflows = 8"),
        ('base = "dumbbell"', 'base = "dumbbell"\nports."s1-p3".buffer = { bdp = 2, other_rtt_ms = 4, packet_bytes = 1000, packets_per_flow = 4, share = 0.5 }'),
        ("connections = 2", 'window_packets = 10\n[tcp]\nmss_bytes = 500\nreceive_windows = 3'),
        ("[run]\n", '[run]\ndraws.fixed = "numbers of the file are looked at"\n'),
    )  # fmt: skip
    slow, fast = (expand(made, Selection(repeats=1, values={"case": (case,)}))[0] for case in ("slow", "fast"))
    assert [flow.connections for flow in slow.flows] == [4, 4]
    assert slow.tcp.receive_window_bytes == 3 * 10 * 500
    buffers = [run.topology["switches"]["s1"]["ports"]["3"]["queue_packets"] for run in (slow, fast)]
    assert buffers == [25, 25]  # half of 50; 2 x 1 Mbit/s x 20 ms are 5 packets, 2 x 4 Mbit/s x 8 ms are 8
    few = Selection(repeats=1, values={"case": ("slow",), "buffer_packets": (1,), "flows": (2,)})
    assert expand(made, few)[0].topology["switches"]["s1"]["ports"]["3"]["queue_packets"] == 4  # half of 2 x 4
    long = Selection(repeats=1, values={"case": ("fast",), "buffer_packets": (1,), "flows": (4,)})
    assert expand(made, long)[0].topology["switches"]["s1"]["ports"]["3"]["queue_packets"] == 8  # half of 4 x 4
    with pytest.raises(ExperimentError, match=r"run.connections 3 is no multiple of the 2 flows"):
        expand(made, Selection(values={"flows": (3,)}))


def test_a_parameter_sets_several_keys_each_with_its_factor() -> None:
    made = definition(
        ("[sets]", '[sets]\nload = { "flows.*.app.offered_bps" = 500_000 }\nthreshold = { "control.threshold" = 2 }'),
        ("buffer_packets = 50", "buffer_packets = 50\nload = 0.5"),
        ('receiver = "h3"\n[[flows]]', 'receiver = "h3"\napp = { kind = "web", mean_bytes = 10_000 }\n[[flows]]'),
        ("connections = 2", 'app = { kind = "web", mean_bytes = 20_000 }'),
    )
    run = expand(made)[0]
    assert [flow.app.arrivals_per_s for flow in run.flows] == [250_000 / 80_000, 250_000 / 160_000]
    assert (run.params["threshold"], run.control.threshold) == (8, 8)
    with pytest.raises(ExperimentError, match=r"sets.threshold: got 'auto', which has no product with 2"):
        expand(made, Selection(values={"threshold": ("auto",)}))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("qthresh-table1", "Qthresh (Chae, Choi, KIPS Transactions C 2004): Table 1, Fig. 2"),
        ("ten-queues", "no paper: the schemes of fairlane side by side"),
    ],
)
def test_where_an_experiment_comes_from_is_one_sentence(name: str, source: str) -> None:
    assert load(name).experiment.source == source
