# SPDX-License-Identifier: Apache-2.0
"""The configuration file without a switch: what it takes, what it refuses and in which words, its text form, its JSON schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.config.model import config_model, json_schema, json_schema_text
from fairlane_controller.config.read import nearest, positions, problems_of, read_file, read_text
from fairlane_controller.config.show import rate_text, to_toml
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.run_state import PortState, RunState, SwitchState
from hypothesis import given
from hypothesis import strategies as st

REPOSITORY = Path(__file__).resolve().parents[2]
TOPOLOGIES = sorted((REPOSITORY / "mininet" / "topologies").glob("*.toml"))

WHOLE = """\
program = "qthresh"

[topology]
name = "lab"
switches = [{ name = "s1", grpc = "127.0.0.1:50051", tls = { ca = "ca.pem" } }]

[loop]
flow_idle = "1min"

[[loop.flow_weights]]
dst_port = 5001
weight = 2.0

[[ports]]
switch = "s1"
port = 3
rate = "2Mbps"
queue_packets = "50packets"
scheduler = "drr"
managed = true
ecn = true

[[classes]]
class = 2
dscp = "EF"

[[policies]]
switch = "s1"
port = 3
threshold = "5packets"
weight = 1.5

[[policies]]
switch = "s1"
port = 3
class = 2
k = 1.5
"""


def refused(text: str) -> str:
    """The one sentence with which a text is refused."""
    with pytest.raises(FairlaneError) as caught:
        read_text(text, "f.toml")
    assert caught.value.code is ErrorCode.BAD_FILE
    return caught.value.message


def run_state(**changes: Any) -> RunState:
    """One switch with a bottleneck of 50 packets at port 3."""
    ports = (PortState(port=1), PortState(port=3, rate_bps=2e6, queue_packets=50, bottleneck=True))
    state = {"name": "lab", "program": "qthresh", "switches": (SwitchState(name="s1", grpc="h:1", ports=ports),)}
    return RunState.model_validate({**state, **changes})


def test_units_become_numbers() -> None:
    config: Any = read_text(WHOLE, "f.toml")
    assert config.loop is not None
    assert config.loop.flow_idle == 60.0
    assert config.ports is not None
    (port,) = config.ports
    assert (port.rate, port.queue_packets, port.ecn) == (2e6, 50, True)
    assert config.classes is not None
    (rule,) = config.classes
    assert (rule.dscp, rule.priority) == (46, 2)
    assert config.policies is not None
    by_hand, auto = config.policies
    settings = [one.settings for one in (by_hand, auto)]
    assert [(one.mode, one.threshold, one.k) for one in settings] == [("manual", 5, 1.95), ("auto", None, 1.5)]
    assert not hasattr(config, "vcs"), "a program's model has no keys of other programs"
    assert problems_of(config, run_state()) == []


def test_text_and_back() -> None:
    config = read_text(WHOLE, "f.toml")
    assert read_text(to_toml(config), "again.toml") == config
    assert type(config).model_validate(json.loads(json.dumps(config.plain()))) == config


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.name)
def test_files_of_the_topologies_are_valid_and_come_back(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))  # where no topology runs
    config = read_file(path).config
    assert problems_of(config, None) == []
    assert read_text(to_toml(config), "again.toml") == config


@pytest.mark.timeout(60)
def test_a_file_that_is_no_toml_is_refused_before_its_keys_are_placed(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text("ports = [ } ]\n")
    with pytest.raises(FairlaneError, match=r"f\.toml: line 1, column 11: Invalid value"):
        read_file(tmp_path / "f.toml")


@pytest.mark.parametrize("text", ["[loop]\n", "ports = []\n", "[loop]\nflow_weights = []\n"])
def test_what_is_given_without_content_stays(text: str) -> None:
    config = read_text(text, "x.toml")
    assert read_text(to_toml(config), "again.toml").plain() == config.plain()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\n", "f.toml: line 1, column 1: a: unknown key; valid: classes, loop"),
        ("[[policies]]\nswitch='s1'\nport=3\nsheme='drop_tail'", "line 4, column 1: policies[0].sheme: unknown key; did you mean 'scheme'?; valid: class, k,"),
        ("[[policies]]\nswitch='s1'\nport=3\nscheme='drop-tail'", "line 4, column 1: policies[0].scheme: 'drop-tail': must be 'drop_tail', 'qthresh' or 'lanes'"),
        ("[[policies]]\nport=600", "line 1, column 1: policies[0].switch: must be given; line 2, column 1: policies[0].port: 600 is out of range: must be less than 510"),
        ("[[policies]]\nswitch='s1'\nport=3\nthreshold='5cells'", "line 4, column 1: policies[0].threshold: number '5cells' is not a whole number of packets; examples: 50, 50packets"),
        ("[[policies]]\nswitch='s1'\nport=3\nthreshold=2\nweight=0.01", "policies[0].weight: 0.01 with a threshold of 2 packets would admit nothing: must be at least 0.5"),
        ("[[loop.flow_weights]]\ndst='h1'\nweight=1", "line 2, column 1: loop.flow_weights[0].dst: 'h1'"),
        ("[[loop.flow_weights]]\nport=1\nweight=1", "loop.flow_weights[0].port: unknown key; did you mean 'src_port'?; valid: dst, dst_port, src, src_port, weight"),
        ("[[loop.flow_weights]]\ndst_port=70000\nweight=1", "dst_port: 70000 is out of range: must be less than or equal to 65535"),
        ("[[loop.flow_weights]]\ndst_port=1\nweight=300", "loop.flow_weights[0].weight: 300 is out of range"),
        ("[[loop.flow_weights]]\ndst_port=1", "loop.flow_weights[0].weight: must be given"),
        ("[loop]\nflow_idle = 250", "line 2, column 1: loop.flow_idle: time 250 must be a text with a unit, such as 250ms"),
        ("[loop]\n\n  flow_idle = '1ms'", "line 3, column 3: loop.flow_idle: '1ms' is out of range: must be greater than or equal to 1"),
        ("ports = [\n  { switch='s1', port=3, rate='2Zbit' }]", "line 1, column 1: ports[0].rate: rate '2Zbit' is not a number with a unit; examples: 512kbit"),
        ("[[ports]]\nswitch='s1'\nport=3\nscheduler='wr'", "line 4, column 1: ports[0].scheduler: 'wr': must be 'strict', 'wrr', 'drr', 'calendar' or 'fq'"),
        ("[[classes]]\nclass=2", "line 1, column 1: classes[0]: a class without ingress_port, dscp or pcp would be all packets"),
        ("[[classes]]\nclass=2\ndscp='AF99'", "line 3, column 1: classes[0].dscp: 'AF99' is no DSCP: must be 0 to 63"),
        ("[topology]\nswitches=[{name='s1', grpc='nowhere'}]", "line 2, column 1: topology.switches[0].grpc: 'nowhere'"),
        ("a = \"x\n", "f.toml: line 1, column 7: Illegal character"),
        ("program='qthresh'\n[[vcs]]\nname='x'\nmcr=1", "line 2, column 1: vcs: unknown key; did you mean 'classes'?; valid: classes, loop, policies, ports, program, topology"),
        ("program='qthresh'\n[[ports]]\nswitch='s1'\nport=3\ncapacity='1Mbit'", "line 5, column 1: ports[0].capacity: unknown key"),
        ("[[vcs]]\nname='x'\nmcr='2Mbit'\nmtach=[]", "line 4, column 1: vcs[0].mtach: unknown key; did you mean 'match'?"),
        ("[[vcs]]\nname='x'\nmcr='2Mbit'\nmatch=[{switch='s1',vlan=5000}]", "line 4, column 1: vcs[0].match[0].vlan: 5000 is out of range: must be less than or equal to 4094"),
    ],
)  # fmt: skip
def test_mistakes_say_where_and_what_is_allowed(text: str, message: str) -> None:
    assert message in refused(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("program='gfr'", "program: the topology 'lab' runs qthresh, not gfr"),
        ("[[ports]]\nswitch='s1'\nport=9", "ports[0].port: switch s1 has no port 9; valid: 1, 3"),
        ("[[ports]]\nswitch='s2'\nport=3", "ports[0].switch: unknown switch 's2'; did you mean 's1'?; valid: s1"),
        ("[[ports]]\nswitch='s1'\nport=3\n[[ports]]\nswitch='s1'\nport=3", "ports[1]: s1:3 is ports[0] too; a port may occur once"),
        ("[[ports]]\nswitch='s1'\nport=3\nlimit_packets=4", "ports[0].limit_packets: the port is not managed"),
        ("[[ports]]\nswitch='s1'\nport=3\nmanaged=true\nlimit_packets=51", "ports[0].limit_packets: 51 is more than the queue has room for (50 packets): must be at most 50"),
        ("[[ports]]\nswitch='s1'\nport=3\necn=true", "ports[0].ecn: the port is not managed"),
        ("[[ports]]\nswitch='s1'\nport=1\nmanaged=true", "ports[0].managed: nothing says how many packets the queue has room for"),
        ("[[policies]]\nswitch='s1'\nport=1\nthreshold=4", "policies[0].port: s1:1 is not managed (managed: s1:3)"),
        ("[[policies]]\nswitch='s1'\nport=3\nthreshold=60", "policies[0].threshold: 60 is more than the port lets wait (50 packets)"),
        ("[[policies]]\nswitch='s1'\nport=3\n[[policies]]\nswitch='s1'\nport=3", "policies[1]: s1:3 class 0 is policies[0] too"),
        ("[[classes]]\nclass=1\npcp=3\n[[classes]]\nclass=2\npcp=3\nswitch='s1'", "classes[1]: matches the same packets as classes[0]"),
        ("[[classes]]\nclass=1\ningress_port=7\nswitch='s1'", "classes[0].ingress_port: switch s1 has no port 7"),
        ("[topology]\nswitches=[{name='s9',grpc='h:1'}]", "topology.switches[0].name: unknown switch 's9'"),
        ("[topology]\nswitches=[{name='s1',grpc='h:1',tls={ca='a',cert='b'}}]", "topology.switches[0].tls: cert and key belong together"),
    ],
)  # fmt: skip
def test_what_the_topology_cannot_have(text: str, message: str) -> None:
    problems = problems_of(read_text(text, "f.toml"), run_state())
    assert message in "; ".join(problems)


def test_the_schema_of_the_docs_is_current() -> None:
    committed = (REPOSITORY / "docs" / "fairlane.schema.json").read_text(encoding="utf-8")
    assert committed == json_schema_text(), "write json_schema_text() into docs/fairlane.schema.json"


def test_the_schema_describes_what_the_file_takes() -> None:
    schema = json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(config_model().model_fields)
    policy = schema["$defs"]["PolicyConfig"]
    assert "class" in policy["properties"]
    assert "traffic_class" not in policy["properties"]
    assert policy["properties"]["k"]["description"] == "Constant of eq. (9)."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 20_000, "f.toml: arrays or objects are nested more than 64 levels deep"),
        ("a = " + "1" * 5_000, "f.toml: Exceeds the limit"),
    ],
    ids=["depth", "digits"],
)
def test_what_no_reader_takes_is_a_mistake_too(text: str, message: str) -> None:
    with pytest.raises(FairlaneError) as caught:
        read_text(text, "f.toml")
    assert caught.value.message.startswith(message)


@given(st.floats(min_value=1, max_value=1e12, allow_nan=False).map(lambda value: round(value, 3)))
def test_rates_come_back(rate_bps: float) -> None:
    config = config_model().model_validate({"ports": [{"switch": "s1", "port": 1, "rate": rate_text(rate_bps)}]})
    assert config.ports is not None
    assert config.ports[0].rate == pytest.approx(rate_bps, abs=1e-6)


def test_positions_of_every_kind_of_key() -> None:
    text = '# c = 1\na.b = "x # no"\n[t."quoted key"]\nk = """\n x = 1 \\""" ""\n"""\nl = [ # why\n 1,\n { p = \'y\', q = [2, 3] },\n]\n[[t.u]]\nz=1\n[[t.u]]\n[t.u.v]\nw=2\n'
    found = positions(text)
    assert found["a.b"] == (2, 1)
    assert found["t.quoted key.k"] == (4, 1)
    assert found["t.quoted key.l[1].q[1]"] == found["t.quoted key.l"] == (7, 1)
    assert found["t.u[0].z"] == (12, 1)
    assert found["t.u[1].v.w"] == (15, 1)
    assert "x" not in found
    assert nearest(found, "t.u[0].nothing.at[3].all") == (11, 1)
    assert nearest(found, "nothing.at.all") is None


def test_a_statement_of_very_many_lines_ends_the_positions_and_no_check() -> None:
    text = "a = 1\nl = [\n" + "1,\n" * 5_000 + "]\nb = 2\n"
    assert positions(text) == {"a": (1, 1)}
