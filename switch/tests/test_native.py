# SPDX-License-Identifier: Apache-2.0
"""The simulator from Python: configuration errors, P4Runtime with finsy's encoders, digests and idle entries in virtual time."""

import contextlib
import json
import pickle
import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from finsy import (
    Match,
    P4CounterEntry,
    P4DigestEntry,
    P4RegisterEntry,
    P4Schema,
    P4TableAction,
    P4TableEntry,
    P4ValueSetEntry,
)
from finsy.p4entity import P4ValueSetMember, decode_entity, encode_entities, encode_updates
from finsy.proto import U128, p4r, rpc_code, rpc_status

native = pytest.importorskip("fairlane_switch.native", reason="not built: run `make setup`")

PROGRAMS = Path(__file__).parent.parent / "crates" / "p4rt" / "tests" / "p4"
JSON = PROGRAMS / "entities.json"
P4INFO = PROGRAMS / "entities.p4info.txtpb"
MS = 1_000_000
SWITCH = {"name": "s1", "ports": [{"port": 1}, {"port": 2}]}
MAC = {1: "02:00:00:00:00:01", 2: "02:00:00:00:00:02"}


def config(**changes: Any) -> str:
    """h1 ── s1 ── h2: UDP, a datagram of 1000 bytes each millisecond."""
    hosts = [{"name": f"h{n}", "ip": f"10.0.0.{n}", "mac": MAC[n], "gateway_mac": MAC[3 - n]} for n in (1, 2)]
    links = [
        {"name": f"h{n}-s1", "a": {"node": f"h{n}"}, "b": {"node": "s1", "port": n}, "a_to_b": {}, "b_to_a": {}}
        for n in (1, 2)
    ]
    app = {"kind": "cbr_udp", "rate_bps": 8_000_000, "payload_bytes": 1000}
    document = {
        "seed": 1,
        "switches": [SWITCH],
        "hosts": hosts,
        "links": links,
        "flows": [{"name": "f", "from": "h1", "to": "h2", "app": app}],
        "sample": {"period_ns": 10 * MS, "ports": [{"switch": "s1", "port": 2}]},
        **changes,
    }
    return json.dumps(document)


class Client:
    """P4Runtime of s1 with finsy's encoders."""

    def __init__(self, simulation: Any) -> None:
        self.p4rt = simulation.p4rt("s1")
        self.schema = P4Schema(P4INFO, JSON)

    def load(self) -> None:
        action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        pipeline = self.schema.get_pipeline_config()
        request = p4r.SetForwardingPipelineConfigRequest(action=action, config=pipeline)
        self.p4rt.set_pipeline(request.SerializeToString())

    def write(self, entities: Iterable[Any]) -> None:
        updates = encode_updates(entities, self.schema)
        self.p4rt.write(p4r.WriteRequest(updates=updates).SerializeToString())  # type: ignore[arg-type]

    def read(self, entity: Any) -> list[Any]:
        request = p4r.ReadRequest(entities=encode_entities([entity], self.schema))
        answers = [p4r.ReadResponse.FromString(data) for data in self.p4rt.read(request.SerializeToString())]
        return [decode_entity(entity, self.schema) for answer in answers for entity in answer.entities]

    def messages(self) -> list[Any]:
        return [p4r.StreamMessageResponse.FromString(data) for data in self.p4rt.messages()]

    def ack(self, digest: Any) -> None:
        ack = p4r.DigestListAck(digest_id=digest.digest_id, list_id=digest.list_id)
        self.p4rt.send(p4r.StreamMessageRequest(digest_ack=ack).SerializeToString())


def started(**changes: Any) -> tuple[Any, Client]:
    """A network whose switch has the program and forwards to h2."""
    simulation = native.Simulation(config(**changes))
    client = Client(simulation)
    client.load()
    forward = P4TableEntry("exact_table", match=Match(dst_addr=MAC[2]), action=P4TableAction("measure", port=2))
    client.write([+forward])
    return simulation, client


def learn_every_16th(client: Client) -> None:
    """IPv4 packets are taken for labels; of each 16 identifications one has the kind that the program learns."""
    client.write([~P4ValueSetEntry("label_types", members=[P4ValueSetMember(0x0800)])])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "EOF while parsing"),
        ('{"sead": 1}', "sead: unknown field"),
        (config(links=[{"name": "l", "a": {"node": "h1"}, "b": {"node": "s9"}}]), "links[0].b.node"),
        (config(switches=[{"name": "s1", "program": "p", "ports": []}]), "switches[0].program"),
        (
            config(programs={"p": {"json": "no/such.json"}}, switches=[{**SWITCH, "program": "p"}]),
            "no/such.json",
        ),
    ],
)
def test_a_bad_configuration_names_the_key(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        native.Simulation(text)


def test_udp_crosses_the_switch() -> None:
    simulation, _ = started()
    assert simulation.run_until(100 * MS) == simulation.now_ns == 100 * MS
    (flow,) = json.loads(simulation.flows())
    assert flow["flow"] == "f"
    assert flow["received_bytes"] in (99_000, 100_000, 101_000)
    ports = {port["port"]: port for port in json.loads(simulation.ports())}
    assert ports[2]["tx_packets"] * 1000 == flow["received_bytes"]
    links = {(link["link"], link["direction"]): link for link in json.loads(simulation.links())}
    assert links["h2-s1", "b_to_a"]["delivered_packets"] == ports[2]["tx_packets"]
    assert json.loads(simulation.transfers()) == []
    assert json.loads(simulation.switches())[0]["received"] == ports[1]["rx_packets"]
    assert {host["host"] for host in json.loads(simulation.hosts())} == {"h1", "h2"}


def test_series_are_columns_of_numbers() -> None:
    simulation, _ = started()
    simulation.run_until(100 * MS)
    columns = {
        name: [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]
        for name, data in simulation.series().items()
    }
    assert columns["t_ns"] == [n * 10 * MS for n in range(len(columns["t_ns"]))]
    sent = columns["port/s1/2/tx_bytes"]
    assert sent == sorted(sent)
    assert sent[-1] > 0


def test_links_and_ports_change_while_it_runs() -> None:
    simulation, _ = started()
    simulation.run_until(50 * MS)
    before = json.loads(simulation.flows())[0]["received_bytes"]
    simulation.set_link("h1-s1", "both", '{"loss": 1.0}')
    simulation.run_until(100 * MS)
    assert json.loads(simulation.flows())[0]["received_bytes"] == before
    simulation.set_link("h1-s1", "a_to_b", '{"loss": 0.0}')
    simulation.outage("h2-s1", "b_to_a", 20 * MS)
    simulation.spike("h1-s1", "a_to_b", 10 * MS)
    simulation.spike("h2-s1", "b_to_a", 10 * MS, "line")
    simulation.set_port("s1", 2, rate_bps=1_000_000, queue_packets=5)
    simulation.run_until(200 * MS)
    port = next(port for port in json.loads(simulation.ports()) if port["port"] == 2)
    assert (port["rate_bps"], port["queue_packets"]) == (1_000_000, 5)
    assert port["refused_packets"] > 0


def test_a_port_can_be_stopped_for_a_time() -> None:
    simulation, _ = started()
    simulation.run_until(50 * MS)
    simulation.spike_port("s1", 2, 100 * MS)
    simulation.run_until(60 * MS)
    stopped = next(port for port in json.loads(simulation.ports()) if port["port"] == 2)
    simulation.run_until(150 * MS - 1)
    port = next(port for port in json.loads(simulation.ports()) if port["port"] == 2)
    assert port["tx_packets"] == stopped["tx_packets"]
    assert port["waiting_packets"] > stopped["waiting_packets"]
    simulation.run_until(200 * MS)
    assert next(port for port in json.loads(simulation.ports()) if port["port"] == 2)["tx_packets"] > port["tx_packets"]


def test_every_option_of_a_port_can_be_changed() -> None:
    simulation, _ = started()
    options = {"queue_bytes": 9000, "queue_cells": 99, "port_packets": 98, "port_bytes": 97_000, "port_cells": 22}
    simulation.set_port("s1", 2, 100_000, scheduler="drr", link_layer="atm", queues=4096, **options)
    simulation.run_until(200 * MS)
    (port,) = [port for port in json.loads(simulation.ports()) if port["port"] == 2]
    # A frame of 1042 bytes is 22 cells and takes 93 ms: one of them may wait.
    assert (port["waiting_packets"], port["waiting_cells"], port["tx_packets"]) == (1, 22, 2)
    assert port["drops"]["port_full"] > 190


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.set_link("nowhere", "both", "{}"), 'no link "nowhere"; there are: "h1-s1", "h2-s1"'),
        (lambda s: s.set_link("h1-s1", "sideways", "{}"), 'direction "sideways" is unknown; known: "a_to_b"'),
        (lambda s: s.set_link("h1-s1", "both", '{"los": 1}'), "los: unknown key; allowed: delay_ns, "),
        (lambda s: s.set_link("h1-s1", "both", '{"loss": 2.0}'), "loss"),
        (lambda s: s.set_port("s1", 9, rate_bps=1), 'no port "9"; there are: 1, 2'),
        (
            lambda s: s.set_port("s1", 2, rate_bps=1, scheduler="fifo"),
            'switch "s1": port 2: scheduler "fifo" is unknown; allowed: strict, wrr, drr, calendar, fq',
        ),
        (
            lambda s: s.set_port("s1", 2, link_layer="ip"),
            'switch "s1": port 2: link_layer "ip" is unknown; allowed: none, ethernet, atm',
        ),
        (lambda s: s.set_port("s1", 2, queues=3), "port 2: 3 queues are fewer than its 8"),
        (lambda s: s.set_port("s1", 2, port_cells=0), "a port capacity of 0 cells would drop everything"),
        (lambda s: s.spike("x", "both", 1), 'no link "x"'),
        (lambda s: s.spike("h1-s1", "both", 1, "queue"), 'blocks: "queue"; allowed: delivery, line'),
        (lambda s: s.spike_port("s1", 9, 1), 'no port "9"; there are: 1, 2'),
        (lambda s: s.p4rt("s2"), 'no switch "s2"; there are: "s1"'),
    ],
)
def test_bad_requests_say_what_is_allowed(call: Callable[[Any], None], words: str) -> None:
    simulation = native.Simulation(config())
    with pytest.raises(ValueError, match=re.escape(words)):
        call(simulation)


def test_what_is_written_is_read() -> None:
    simulation, client = started()
    client.write([~P4RegisterEntry("cells", index=7, data=5)])
    assert client.read(P4RegisterEntry("cells", index=7))[0].data == 5
    simulation.run_until(10 * MS)
    (entry,) = client.read(P4TableEntry("exact_table", counter_data=None))
    assert entry.action.args == {"port": 2}
    assert len(client.read(P4CounterEntry("port_counter"))) == 64


def test_a_refused_call_carries_its_status() -> None:
    simulation = native.Simulation(config())
    client = Client(simulation)
    with pytest.raises(native.P4RuntimeError, match="No forwarding pipeline config") as caught:
        client.read(P4TableEntry("exact_table"))
    assert caught.value.code == rpc_code.FAILED_PRECONDITION
    client.load()
    good = P4TableEntry("exact_table", match=Match(dst_addr=MAC[2]), action=P4TableAction("measure", port=2))
    insert = +good
    with pytest.raises(native.P4RuntimeError) as caught:
        client.write([insert, insert])
    error = caught.value
    status = rpc_status.Status.FromString(error.details)
    assert (error.code, status.code, status.message) == (rpc_code.UNKNOWN, rpc_code.UNKNOWN, error.message)
    codes = [p4r.Error.FromString(detail.value).canonical_code for detail in status.details]
    assert codes == [rpc_code.OK, rpc_code.ALREADY_EXISTS]
    assert len(client.read(P4TableEntry("exact_table"))) == 1  # the good one is in
    copy = pickle.loads(pickle.dumps(error))  # so that it crosses process boundaries
    assert (type(copy), copy.code, copy.details, str(copy)) == (type(error), error.code, error.details, str(error))
    with pytest.raises(ValueError, match=r"not a WriteRequest of p4\.v1"):
        client.p4rt.write(b"\xff\xff")
    with pytest.raises(native.P4RuntimeError, match="needs a config"):
        client.p4rt.set_pipeline(p4r.SetForwardingPipelineConfigRequest(action=1).SerializeToString())


def test_the_caller_is_primary_whatever_it_says() -> None:
    _, client = started()
    request = p4r.WriteRequest(device_id=77, election_id=U128.encode(5), role="other")
    client.p4rt.write(request.SerializeToString())


def test_time_stops_when_a_digest_list_is_due() -> None:
    simulation, client = started()
    learn_every_16th(client)
    client.write([+P4DigestEntry("learn_t", max_list_size=1, ack_timeout_ns=10**12)])
    stopped = simulation.run_until(10**9, stop_on_messages=True)
    assert 0 < stopped < 20 * MS
    (message,) = client.messages()
    assert message.digest.timestamp == stopped == simulation.now_ns
    # Told once until it is acknowledged.
    assert simulation.run_until(stopped + 100 * MS, stop_on_messages=True) == stopped + 100 * MS
    assert client.messages() == []
    client.ack(message.digest)
    again = simulation.run_until(10**9, stop_on_messages=True)
    assert again < stopped + 120 * MS
    assert client.messages()[0].digest.data == message.digest.data


def test_a_digest_list_waits_for_its_timeout_in_virtual_time() -> None:
    simulation, client = started()
    learn_every_16th(client)
    client.write([+P4DigestEntry("learn_t", max_list_size=1, ack_timeout_ns=0)])
    first = simulation.run_until(10**9, stop_on_messages=True)
    client.messages()
    simulation, client = started()
    learn_every_16th(client)
    client.write([+P4DigestEntry("learn_t", max_timeout_ns=123_456, ack_timeout_ns=0)])
    assert simulation.run_until(10**9, stop_on_messages=True) == first + 123_456
    assert [len(message.digest.data) for message in client.messages()] == [1]


def test_messages_that_were_not_taken_stop_time_at_once() -> None:
    simulation, client = started()
    learn_every_16th(client)
    client.write([+P4DigestEntry("learn_t", max_list_size=1, ack_timeout_ns=0)])
    stopped = simulation.run_until(10**9, stop_on_messages=True)
    assert simulation.run_until(10**9, stop_on_messages=True) == stopped
    client.messages()
    assert simulation.run_until(10**9, stop_on_messages=True) > stopped


def test_what_nobody_listens_to_stops_nothing() -> None:
    simulation = native.Simulation(config())
    assert simulation.run_until(50 * MS, stop_on_messages=True) == 50 * MS


def test_an_idle_entry_is_told_at_its_time() -> None:
    simulation, client = started()
    idle = P4TableEntry(
        "exact_table", match=Match(dst_addr=9), action=P4TableAction("measure", port=2), idle_timeout_ns=300 * MS
    )
    client.write([+idle])
    stopped = simulation.run_until(10**9, stop_on_messages=True)
    assert 300 * MS <= stopped <= 400 * MS
    (message,) = client.messages()
    note = message.idle_timeout_notification
    assert [entry.idle_timeout_ns for entry in note.table_entry] == [300 * MS]


def test_the_same_twice() -> None:
    def run() -> list[Any]:
        simulation, client = started()
        learn_every_16th(client)
        client.write([+P4DigestEntry("learn_t", max_list_size=1, ack_timeout_ns=0)])
        told: list[Any] = []
        while simulation.run_until(300 * MS, stop_on_messages=True) < 300 * MS:
            told.extend(client.p4rt.messages())
        return [told, simulation.flows(), simulation.ports(), simulation.series()]

    first, second = run(), run()
    assert first == second
    assert len(first[0]) > 10


def test_two_threads_at_once_are_refused() -> None:
    simulation, client = started()
    finished = threading.Event()

    def run() -> None:
        while not finished.is_set():
            with contextlib.suppress(RuntimeError):  # the other thread was first
                simulation.run_until(simulation.now_ns + 10**9)

    def use_it() -> None:
        while True:  # ended by the time limit of the test
            client.messages()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="in use by another thread"):
            use_it()
    finally:
        finished.set()
        thread.join()
