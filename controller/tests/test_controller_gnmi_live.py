# SPDX-License-Identifier: Apache-2.0
"""Ports and queues of a real fairlane-switch over gNMI: read, changed all or nothing, watched; and `fairlane ports` on it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import queue
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest
import unused_ports
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.embedded import GnmiPorts
from fairlane_controller.gnmi.ports import PortChange, PortInfo, QueueInfo
from fairlane_controller.programs.qthresh.policies import read_managed
from fairlane_controller.state.run_state import read_run_state
from fairlane_controller.state.store import Store
from fairlane_controller.switch.certificates import make_certificates
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.security import TlsFiles
from finsy import GNMIPath
from finsy.proto import gnmi, gnmi_grpc
from live_switch import QUEUE_PACKETS, RATE_BPS, REPOSITORY, LiveSwitch, binary

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network interfaces: needs root"),
    pytest.mark.skipif(binary("embedded") is None, reason="fairlane-switch is not built"),
]
WAIT_S = 15.0
T = TypeVar("T")


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Generator[LiveSwitch]:
    """A switch with interfaces at ports 1 and 3; port 3 has a rate and a capacity."""
    folder = tmp_path_factory.mktemp("gnmi")
    names = {port: f"gn{os.getpid() % 100_000}p{port}" for port in (1, 3)}
    for name in names.values():
        subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}x"], check=True)
        for end in (name, f"{name}x"):
            subprocess.run(["ip", "link", "set", end, "up"], check=True)
    live = LiveSwitch("embedded", folder, names)
    try:
        live.start()
        live.write_state()
        with grpc.insecure_channel(f"127.0.0.1:{live.grpc_port}") as channel:
            try:
                gnmi_grpc.gNMIStub(channel).Capabilities(gnmi.CapabilityRequest(), timeout=WAIT_S)
            except grpc.RpcError as ex:
                if ex.code() is grpc.StatusCode.UNIMPLEMENTED:  # type: ignore[attr-defined]
                    pytest.skip("this fairlane-switch is an older one, without gNMI: build it again")
                raise
        live.fairlane("config", "init")
        yield live
    finally:
        live.kill()
        for name in names.values():
            subprocess.run(["ip", "link", "delete", name], check=False)


@contextmanager
def stub(switch: LiveSwitch) -> Generator[Any]:
    """The generated client."""
    with grpc.insecure_channel(f"127.0.0.1:{switch.grpc_port}") as channel:
        yield gnmi_grpc.gNMIStub(channel)


def endpoint(switch: LiveSwitch) -> Endpoint:
    return Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")


def work(switch: LiveSwitch, job: Callable[[GnmiPorts], Awaitable[T]]) -> T:
    """`await job(ports)` with a connected client."""

    async def run() -> T:
        async with GnmiPorts(endpoint(switch)) as ports:
            return await asyncio.wait_for(job(ports), WAIT_S)

    return asyncio.run(run())


def port(switch: LiveSwitch, number: int, *, queues: bool = False) -> PortInfo:
    found = work(switch, lambda ports: ports.ports(queues=queues))
    return next(one for one in found if one.port == number)


COUNTERS = (
    "received_packets",
    "received_bytes",
    "sent_packets",
    "sent_bytes",
    "dropped_packets",
    "send_errors",
    "receive_losses",
)


def options(ports: list[PortInfo]) -> list[PortInfo]:
    """Without counters: frames of the kernel's own may come at any time."""
    without: dict[str, Any] = dict.fromkeys(COUNTERS)
    return [
        replace(one, **without, drops={}, queue_list=tuple(QueueInfo(q.queue, q.weight) for q in one.queue_list))
        for one in ports
    ]


def path(text: str) -> gnmi.Path:
    return GNMIPath(text).path


def uint(text: str, value: int) -> gnmi.Update:
    return gnmi.Update(path=path(text), val=gnmi.TypedValue(uint_val=value))


def shaper(name: str, leaf: str) -> str:
    return f"qos/scheduler-policies/scheduler-policy[name={name}]/schedulers/scheduler[sequence=1]/one-rate-two-color/config/{leaf}"


def refused(call: Any) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code().name, caught.value.details()  # type: ignore[attr-defined]


@contextmanager
def subscribed(switch: LiveSwitch, sublist: gnmi.SubscriptionList) -> Generator[tuple[queue.Queue[Any], Any]]:
    """Responses of a subscription as they come, and a function that sends a poll."""
    asks: queue.Queue[Any] = queue.Queue()
    came: queue.Queue[Any] = queue.Queue()
    asks.put(gnmi.SubscribeRequest(subscribe=sublist))
    with stub(switch) as client:
        call = client.Subscribe(iter(asks.get, None))

        def read() -> None:
            try:
                for response in call:
                    came.put(response)
            except grpc.RpcError as ex:
                came.put(ex)
            came.put(None)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            yield came, lambda: asks.put(gnmi.SubscribeRequest(poll=gnmi.Poll()))
        finally:
            asks.put(None)
            call.cancel()
            thread.join(WAIT_S)


def until_sync(came: queue.Queue[Any]) -> dict[str, Any]:
    """Leaves up to the sync, by path."""
    leaves: dict[str, Any] = {}
    while True:
        response = came.get(timeout=WAIT_S)
        assert isinstance(response, gnmi.SubscribeResponse), response
        if response.sync_response:
            return leaves
        leaves |= leaves_of(response.update)


def leaves_of(notification: gnmi.Notification) -> dict[str, Any]:
    assert notification.timestamp > 0
    return {str(GNMIPath(u.path)): scalar(u.val) for u in notification.update}


def scalar(value: gnmi.TypedValue) -> Any:
    found = getattr(value, str(value.WhichOneof("value")))
    return json.loads(found) if isinstance(found, bytes) else found


def subscription(
    text: str,
    mode: str = "TARGET_DEFINED",
    *,
    sample_interval: int = 0,
    suppress_redundant: bool = False,
    heartbeat_interval: int = 0,
) -> gnmi.Subscription:
    return gnmi.Subscription(
        path=path(text),
        mode=gnmi.SubscriptionMode.Value(mode),
        sample_interval=sample_interval,
        suppress_redundant=suppress_redundant,
        heartbeat_interval=heartbeat_interval,
    )


# ---- reading ---------------------------------------------------------------------------------------------------------


def test_capabilities_name_models_and_encodings(switch: LiveSwitch) -> None:
    with stub(switch) as client:
        answer = client.Capabilities(gnmi.CapabilityRequest(), timeout=WAIT_S)
    assert answer.gNMI_version == "0.10.0"
    names = {model.name for model in answer.supported_models}
    assert {"openconfig-interfaces", "openconfig-qos", "fairlane-port"} <= names
    assert gnmi.Encoding.JSON_IETF in answer.supported_encodings
    assert gnmi.Encoding.PROTO in answer.supported_encodings


def test_ports_are_read_with_their_options_and_counters(switch: LiveSwitch) -> None:
    one = port(switch, 3, queues=True)
    assert (one.interface, one.rate_bps, one.queue_packets) == (switch.interfaces[3], RATE_BPS, QUEUE_PACKETS)
    assert (one.scheduler, one.queues, one.link_layer, one.admin_up, one.oper_up) == ("strict", 8, "none", True, True)
    assert one.queue_bytes is None
    assert one.waiting_packets == 0
    assert one.sent_packets is not None
    assert [q.queue for q in one.queue_list] == list(range(8))
    assert one.queue_list[0].weight == 1
    assert port(switch, 1).rate_bps == 0


def test_json_is_a_tree_with_modules_and_text_for_64_bits(switch: LiveSwitch) -> None:
    name = switch.interfaces[3]
    request = gnmi.GetRequest(encoding=gnmi.Encoding.JSON_IETF)
    request.path.extend([path(f"interfaces/interface[name={name}]"), path(shaper(name, ""))])
    with stub(switch) as client:
        answer = client.Get(request, timeout=WAIT_S)
    tree = scalar(answer.notification[0].update[0].val)
    assert tree["openconfig-interfaces:state"]["ifindex"] == 3
    assert tree["openconfig-interfaces:state"]["openconfig-p4rt:id"] == 3
    assert isinstance(tree["openconfig-interfaces:state"]["counters"]["in-pkts"], str)
    assert tree["fairlane-port:port"]["config"]["queues"] == 8
    shaped = scalar(answer.notification[1].update[0].val)
    assert shaped == {"openconfig-qos:cir": str(RATE_BPS), "openconfig-qos:max-queue-depth-packets": QUEUE_PACKETS}


def test_frames_are_counted_by_their_address(switch: LiveSwitch) -> None:
    name = switch.interfaces[1]
    wanted = [path(f"interfaces/interface[name={name}]/state/counters")]

    def counters() -> dict[str, int]:
        answer = client.Get(gnmi.GetRequest(path=wanted, encoding=gnmi.Encoding.PROTO), timeout=WAIT_S)
        return {GNMIPath(u.path).last: u.val.uint_val for u in answer.notification[0].update}

    with stub(switch) as client, socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((f"{name}x", 0))
        before = counters()
        frames = {"unicast": "020000000001", "multicast": "010000000001", "broadcast": "ffffffffffff"}
        for count, address in enumerate(frames.values(), 1):
            for _ in range(count):
                sender.send(bytes.fromhex(address + "02000000000f" + "88b5") + bytes(46))
        deadline = time.monotonic() + WAIT_S
        while (now := counters())["in-broadcast-pkts"] < before["in-broadcast-pkts"] + 3:
            assert time.monotonic() < deadline, now
            time.sleep(0.02)
    more = {leaf: value - before[leaf] for leaf, value in now.items()}
    assert (more["in-unicast-pkts"], more["in-broadcast-pkts"]) == (1, 3)
    assert more["in-multicast-pkts"] >= 2, "the kernel may send some of its own"
    assert sum(more[f"in-{kind}-pkts"] for kind in frames) == more["in-pkts"]
    assert all(f"out-{kind}-pkts" in now for kind in frames)
    assert not any(more[f"in-{leaf}"] for leaf in ("discards", "errors", "fcs-errors", "unknown-protos"))
    assert more["last-clear"] == 0
    assert now["last-clear"] > 10**18


def test_wildcards_and_parts(switch: LiveSwitch) -> None:
    with stub(switch) as client:
        every = client.Get(
            gnmi.GetRequest(
                path=[path("interfaces/interface[name=*]/state/oper-status")], encoding=gnmi.Encoding.PROTO
            ),
            timeout=WAIT_S,
        )
        deep = client.Get(
            gnmi.GetRequest(path=[path("interfaces/.../in-pkts")], encoding=gnmi.Encoding.PROTO), timeout=WAIT_S
        )
        config = client.Get(
            gnmi.GetRequest(path=[path("interfaces")], encoding=gnmi.Encoding.PROTO, type=gnmi.GetRequest.CONFIG),
            timeout=WAIT_S,
        )
    assert {GNMIPath(u.path)["name"] for u in every.notification[0].update} == set(switch.interfaces.values())
    assert len(deep.notification[0].update) == 2
    assert not [u for u in config.notification[0].update if "state" in GNMIPath(u.path)]


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        (
            "interfaces/interface[name=*]/state/oper-statu",
            "INVALID_ARGUMENT",
            "element 4 is unknown; known: name, type, ",
        ),
        ("interfaces/interface[name=nosuch0]/state", "NOT_FOUND", "interfaces are "),
        ("interfaces/interface[interface-id=x]", "INVALID_ARGUMENT", "element 2 is unknown; known: interface[name]"),
    ],
)
def test_a_path_that_is_not_there_is_told(switch: LiveSwitch, text: str, code: str, part: str) -> None:
    with stub(switch) as client:
        got, message = refused(
            lambda: client.Get(gnmi.GetRequest(path=[path(text)], encoding=gnmi.Encoding.PROTO), timeout=WAIT_S)
        )
    assert got == code, message
    assert part in message, message


def test_an_encoding_that_is_not_served_is_told(switch: LiveSwitch) -> None:
    with stub(switch) as client:
        got, message = refused(lambda: client.Get(gnmi.GetRequest(encoding=gnmi.Encoding.ASCII), timeout=WAIT_S))
    assert (got, message) == ("UNIMPLEMENTED", "encoding ASCII is not served; JSON_IETF, JSON and PROTO are")


# ---- changing --------------------------------------------------------------------------------------------------------


def test_what_is_set_holds_and_the_rest_stays(switch: LiveSwitch) -> None:
    change = PortChange(rate_bps=5_000_000, queue_bytes=64_000, scheduler="drr", weights={1: 3})
    work(switch, lambda ports: ports.set_port(1, change))
    one = port(switch, 1, queues=True)
    assert (one.rate_bps, one.queue_bytes, one.scheduler, one.queue_packets) == (5_000_000, 64_000, "drr", 1000)
    assert [q.weight for q in one.queue_list[:3]] == [1, 3, 1]
    work(
        switch,
        lambda ports: ports.set_port(1, PortChange(rate_bps=0, queue_bytes=0, scheduler="strict", weights={1: 1})),
    )
    one = port(switch, 1)
    assert (one.rate_bps, one.queue_bytes, one.scheduler) == (0, None, "strict")


def test_a_set_is_done_whole_or_not_at_all(switch: LiveSwitch) -> None:
    one, three = switch.interfaces[1], switch.interfaces[3]
    before = options(work(switch, lambda ports: ports.ports(queues=True)))
    bad = [
        (uint(shaper(three, "max-queue-depth-packets"), 0), "INVALID_ARGUMENT", "a queue capacity of 0 packets"),
        (uint(shaper(three, "cir"), 2 * 10**12), "INVALID_ARGUMENT", "is above 1000000000000 bit/s"),
        (uint(f"interfaces/interface[name={three}]/state/ifindex", 4), "INVALID_ARGUMENT", "it is read-only"),
        (uint(f"interfaces/interface[name={three}]/port/config/queues", 7), "INVALID_ARGUMENT", "queues can only be added"),
        (uint(shaper("nosuch0", "cir"), 7), "NOT_FOUND", "scheduler-policy[name=nosuch0]"),
        (uint(shaper("*", "cir"), 7), "INVALID_ARGUMENT", "a Set takes no wildcards"),
        (
            gnmi.Update(path=path(f"interfaces/interface[name={three}]/port/config/scheduler"), val=gnmi.TypedValue(string_val="fifo")),
            "INVALID_ARGUMENT",
            "one of strict, wrr, drr, calendar, fq",
        ),
    ]  # fmt: skip
    down = gnmi.Update(
        path=path(f"interfaces/interface[name={one}]/config/enabled"), val=gnmi.TypedValue(bool_val=False)
    )
    with stub(switch) as client:
        for update, code, part in bad:
            request = gnmi.SetRequest(update=[uint(shaper(one, "cir"), 1_000_000), down, update])
            got, message = refused(lambda request=request: client.Set(request, timeout=WAIT_S))
            assert got == code, message
            assert part in message, message
            assert str(GNMIPath(update.path)) in message, message
    assert options(work(switch, lambda ports: ports.ports(queues=True))) == before


def test_replace_and_delete_give_defaults(switch: LiveSwitch) -> None:
    name = switch.interfaces[1]
    tree = {"openconfig-qos:cir": "3000000"}
    container = path(shaper(name, "").rstrip("/"))
    work(switch, lambda ports: ports.set_port(1, PortChange(queue_packets=7)))
    with stub(switch) as client:
        replace = gnmi.Update(path=container, val=gnmi.TypedValue(json_ietf_val=json.dumps(tree).encode()))
        answer = client.Set(gnmi.SetRequest(replace=[replace]), timeout=WAIT_S)
        assert answer.response[0].op == gnmi.UpdateResult.REPLACE
        assert answer.timestamp > 0
        replaced = port(switch, 1)
        assert (replaced.rate_bps, replaced.queue_packets) == (3_000_000, 1000)
        client.Set(gnmi.SetRequest(delete=[path(shaper(name, "cir"))]), timeout=WAIT_S)
    assert port(switch, 1).rate_bps == 0


# ---- watching --------------------------------------------------------------------------------------------------------


def test_once_ends_after_the_sync(switch: LiveSwitch) -> None:
    once = gnmi.SubscriptionList(
        mode=gnmi.SubscriptionList.ONCE,
        encoding=gnmi.Encoding.PROTO,
        subscription=[subscription("interfaces/interface/state/ifindex")],
    )
    with subscribed(switch, once) as (came, _):
        assert sorted(until_sync(came).values()) == [1, 3]
        assert came.get(timeout=WAIT_S) is None


def test_a_poll_is_answered_each_time(switch: LiveSwitch) -> None:
    polled = gnmi.SubscriptionList(
        mode=gnmi.SubscriptionList.POLL,
        encoding=gnmi.Encoding.PROTO,
        subscription=[subscription("interfaces/interface/config/enabled")],
    )
    with subscribed(switch, polled) as (came, poll):
        first = until_sync(came)
        for _ in range(3):
            poll()
            assert until_sync(came) == first
    polled.updates_only = True
    with subscribed(switch, polled) as (came, poll):
        assert not until_sync(came)
        poll()
        assert not until_sync(came)


def test_samples_come_and_redundant_ones_do_not(switch: LiveSwitch) -> None:
    name = switch.interfaces[3]
    every = 20_000_000
    rate = shaper(name, "cir")
    sampled = gnmi.SubscriptionList(
        encoding=gnmi.Encoding.PROTO, subscription=[subscription(rate, "SAMPLE", sample_interval=every)]
    )
    with subscribed(switch, sampled) as (came, _):
        until_sync(came)
        times = [came.get(timeout=WAIT_S).update.timestamp for _ in range(4)]
    assert times == sorted(set(times))
    quiet = subscription(rate, "SAMPLE", sample_interval=every, suppress_redundant=True)
    with subscribed(switch, gnmi.SubscriptionList(encoding=gnmi.Encoding.PROTO, subscription=[quiet])) as (came, _):
        assert list(until_sync(came).values()) == [RATE_BPS]
        work(switch, lambda ports: ports.set_port(3, PortChange(rate_bps=RATE_BPS + 8)))
        assert list(leaves_of(came.get(timeout=WAIT_S).update).values()) == [RATE_BPS + 8]
        work(switch, lambda ports: ports.set_port(3, PortChange(rate_bps=RATE_BPS)))
        assert list(leaves_of(came.get(timeout=WAIT_S).update).values()) == [RATE_BPS]
    beats = subscription(rate, "SAMPLE", sample_interval=every, suppress_redundant=True, heartbeat_interval=2 * every)
    with subscribed(switch, gnmi.SubscriptionList(encoding=gnmi.Encoding.PROTO, subscription=[beats])) as (came, _):
        until_sync(came)
        assert [list(leaves_of(came.get(timeout=WAIT_S).update).values()) for _ in range(2)] == [[RATE_BPS]] * 2


def test_an_interval_that_is_too_short_is_the_shortest(switch: LiveSwitch) -> None:
    """As Stratum takes it: finsy's ngsdn asks for 10 us, and means 10 s. A second one of 0 was a division by zero."""
    ports = [
        subscription(f"interfaces/interface[name=*]/state/counters/{leaf}", "SAMPLE", sample_interval=interval)
        for leaf, interval in (("in-pkts", 10_000), ("out-pkts", 0))
    ]
    with subscribed(switch, gnmi.SubscriptionList(subscription=ports)) as (came, _):
        leaves = set(until_sync(came))
        while leaves:
            leaves -= set(leaves_of(came.get(timeout=WAIT_S).update))


@pytest.mark.parametrize(
    ("sub", "part"),
    [
        (subscription("interfaces/interface/state", "ON_CHANGE"), "use SAMPLE, or TARGET_DEFINED"),
        (subscription("interfaces", "SAMPLE", heartbeat_interval=1000), "at least 10ms"),
    ],
)
def test_a_subscription_that_cannot_be_is_told(switch: LiveSwitch, sub: gnmi.Subscription, part: str) -> None:
    with subscribed(switch, gnmi.SubscriptionList(subscription=[sub])) as (came, _):
        error = came.get(timeout=WAIT_S)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert part in error.details()


def test_a_port_is_taken_down_and_its_subscribers_hear_of_it(switch: LiveSwitch) -> None:
    name = switch.interfaces[1]
    link = Path(f"/sys/class/net/{name}/flags")

    states = gnmi.SubscriptionList(subscription=[subscription(f"interfaces/interface[name={name}]/state/oper-status")])
    with subscribed(switch, states) as (came, _):

        def wait_for(value: str) -> None:
            while list(leaves_of(came.get(timeout=WAIT_S).update).values()) != [value]:
                pass

        assert list(until_sync(came).values()) == ["UP"]
        for enabled in (False, True):
            work(switch, lambda ports, enabled=enabled: ports.set_port(1, PortChange(enabled=enabled)))
            assert bool(int(link.read_text(), 16) & 1) is enabled
            wait_for("UP" if enabled else "DOWN")
        try:  # the carrier is the other end's: the interface itself stays up
            subprocess.run(["ip", "link", "set", f"{name}x", "down"], check=True)
            wait_for("DOWN")
            one = port(switch, 1)
            assert (one.admin_up, one.oper_up) == (True, False)
        finally:
            subprocess.run(["ip", "link", "set", f"{name}x", "up"], check=True)


def test_a_hundred_subscribers_hear_of_one_change(switch: LiveSwitch) -> None:
    name, rate = switch.interfaces[3], 1_234_567
    sublist = gnmi.SubscriptionList(
        encoding=gnmi.Encoding.PROTO, subscription=[subscription(shaper(name, "cir"), "ON_CHANGE")]
    )
    request = gnmi.SubscribeRequest(subscribe=sublist)

    async def run() -> list[int]:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{switch.grpc_port}") as channel:
            calls: list[Any] = [gnmi_grpc.gNMIStub(channel).Subscribe(_forever(request)) for _ in range(100)]
            for call in calls:
                while not (await call.read()).sync_response:
                    pass
            async with GnmiPorts(endpoint(switch)) as ports:
                await ports.set_port(3, PortChange(rate_bps=rate))
                heard = [(await call.read()).update.update[0].val.uint_val for call in calls]
                await ports.set_port(3, PortChange(rate_bps=RATE_BPS))
            for call in calls:
                call.cancel()
        return heard

    assert asyncio.run(asyncio.wait_for(run(), 60)) == [rate] * 100


async def _forever(request: gnmi.SubscribeRequest) -> AsyncGenerator[gnmi.SubscribeRequest]:
    yield request
    await asyncio.Event().wait()


# ---- the command line ------------------------------------------------------------------------------------------------


def _limit(switch: LiveSwitch) -> int:
    """What the program admits at port 3, packets."""

    async def read() -> int:
        async with SwitchClient(endpoint(switch)) as client:
            return (await read_managed(client)).ports[3].limit_packets or 0

    return asyncio.run(read())


def _state_port(switch: LiveSwitch) -> dict[str, Any]:
    (state,) = read_run_state(switch.folder).switches
    return next(p for p in state.ports if p.port == 3).model_dump()


def test_ports_set_changes_switch_limit_and_state_and_undo_takes_it_back(switch: LiveSwitch) -> None:
    before = port(switch, 3)
    dry = switch.fairlane("ports", "set", "s1:3", "--rate", "4Mbps", "--queue-packets", "80", "--dry-run")
    assert "would be set" in dry
    assert options([port(switch, 3)]) == options([before])
    said = switch.fairlane("ports", "set", "s1:3", "--rate", "4Mbps", "--queue-packets", "80", "--scheduler", "drr")
    assert "rate 4 Mbit/s" in said
    assert "port_limit of port 3 = 80 packets" in said
    now = port(switch, 3)
    assert (now.rate_bps, now.queue_packets, now.scheduler) == (4_000_000, 80, "drr")
    assert _limit(switch) == 80
    assert {k: _state_port(switch)[k] for k in ("rate_bps", "queue_packets")} == {
        "rate_bps": 4_000_000,
        "queue_packets": 80,
    }
    assert "ports set s1:3" in switch.fairlane("undo")
    back = port(switch, 3)
    assert (back.rate_bps, back.queue_packets, back.scheduler) == (RATE_BPS, QUEUE_PACKETS, "strict")
    assert _limit(switch) == QUEUE_PACKETS
    assert _state_port(switch)["queue_packets"] == QUEUE_PACKETS


def test_the_limit_follows_while_a_loop_runs(switch: LiveSwitch) -> None:
    with switch.loop():
        switch.fairlane("ports", "set", "s1:3", "--queue-packets", "60")
        assert _limit(switch) == 60
        switch.fairlane("undo")
        assert _limit(switch) == QUEUE_PACKETS


def test_ports_shows_what_is(switch: LiveSwitch) -> None:
    text = switch.fairlane("ports", "--interval", "50ms")
    assert switch.interfaces[3] in text
    assert "2 Mbit/s" in text
    assert "queue packets 50" in text
    assert "strict" in text
    rows = switch.json("ports", "--interval", "50ms")
    assert [row["port"] for row in rows] == [1, 3]
    assert rows[1]["rate_bps"] == RATE_BPS
    assert len(switch.json("describe", "s1:3", "--interval", "50ms")["port"]["queue_list"]) == 8
    assert rows[0]["tx_bps"] is not None
    assert rows[0]["oper_up"] is True


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("ports", "set", "s1:9", "--rate", "2Mbps"), 3, "has no port 9; it has 1 ("),
        (("ports", "set", "s1:eth9", "--down"), 3, "has no port eth9; it has 1 ("),
        (("ports", "set", "s1:3"), 2, "ports set needs at least one option of what to change"),
        (("ports", "set", "s1:3", "--rate", "5"), 2, "--rate '5' is not a number with a unit; examples: 512kbit"),
        (("ports", "set", "s1:3", "--queue-packets", "0"), 2, "queue packets 0 is out of range"),
        (("ports", "set", "s1:3", "--scheduler", "fifo"), 2, "allowed: strict, wrr, drr, calendar, fq"),
        (("ports", "set", "s1:3", "--queues", "4"), 2, "queues can only be added"),
        (("ports", "set", "s1:3", "--queue-weight", "9=2"), 2, "there is no queue 9"),
        (("ports", "set", "s1:3", "--queue-weight", "9"), 2, "--queue-weight '9': must be QUEUE=WEIGHT, e.g. 1=3"),
        (("ports", "set", "s1:3", "--queue-packets", "64KB"), 2, "is not a whole number of packets"),
    ],
)
def test_what_is_refused_says_what_is_allowed(
    switch: LiveSwitch, arguments: tuple[str, ...], code: int, part: str
) -> None:
    before = port(switch, 3)
    assert part in switch.fairlane(*arguments, code=code)
    assert options([port(switch, 3)]) == options([before])


def test_a_port_that_refuses_brings_back_the_ports_before_it(
    switch: LiveSwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fairlane.toml"
    file.write_text("".join(f'[[ports]]\nswitch = "s1"\nport = {number}\nqueue_packets = 70\n' for number in (1, 3)))
    before, changes = port(switch, 1).queue_packets, len(switch.json("undo", "--list"))

    real = GnmiPorts.set_port

    async def refuses_3(self: GnmiPorts, number: int, change: PortChange, *, dry_run: bool = False) -> list[str]:
        if number == 3 and not dry_run:
            raise FairlaneError(ErrorCode.REFUSED, "port 3 does not want to")
        return await real(self, number, change, dry_run=dry_run)

    monkeypatch.setattr(GnmiPorts, "set_port", refuses_3)
    assert "does not want to" in switch.fairlane("config", "apply", str(file), code=ErrorCode.REFUSED.exit_code)
    assert port(switch, 1).queue_packets == before
    assert len(switch.json("undo", "--list")) == changes


def test_a_run_state_that_cannot_be_written_leaves_the_port_as_it_was_and_a_retry_works(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise FairlaneError(ErrorCode.BAD_FILE, f"cannot write state.db: {os.strerror(errno.ENOSPC)}")

    before, limit, changes = port(switch, 3), _limit(switch), len(switch.json("undo", "--list"))
    words = ("ports", "set", "s1:3", "--rate", "4Mbps", "--queue-packets")
    for packets in ("80", "20"):  # the program's limit goes up after the queue, and down before it
        with monkeypatch.context() as patch:
            patch.setattr(Store, "record", full)
            assert "cannot write state.db: No space left on device" in switch.fairlane(*words, packets, code=3)
        assert options([port(switch, 3)]) == options([before])
        assert _limit(switch) == limit
        assert len(switch.json("undo", "--list")) == changes
    switch.fairlane(*words, "80")
    switch.fairlane("undo")
    assert options([port(switch, 3)]) == options([before])
    assert _limit(switch) == limit


def test_the_log_says_who_changed_what_of_a_port(switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "ada")
    known = len(switch.events("changed"))
    switch.fairlane("ports", "set", "s1:3", "--rate", "4Mbps", "--queue-packets", "80")
    switch.fairlane("ports", "set", "s1:3", "--rate", "4Mbit")  # nothing that it had not
    switch.fairlane("undo")
    switch.fairlane("undo")
    made, back = switch.events("changed")[known:]
    assert (made["switch"], made["port"], made["by"]) == ("s1", 3, "ada")
    assert made["command"].startswith("ports set s1:3 --rate 4Mbps")
    assert made["before"] == {"rate_bps": RATE_BPS, "queue_packets": QUEUE_PACKETS}
    assert made["after"] == {"rate_bps": 4_000_000, "queue_packets": 80}
    assert made["why"].startswith(
        "ada set rate 4 Mbit/s, queue packets 80 (was rate 2 Mbit/s, queue packets 50) by `ports set"
    )
    assert (back["after"], back["before"]) == (made["before"], made["after"])
    assert back["why"].endswith("by `undo --state " + f"{switch.folder}`")
    assert "ada set rate 4 Mbit/s" in switch.fairlane("log", "3", "--event", "changed")


def test_a_port_may_be_named_by_its_interface(switch: LiveSwitch) -> None:
    switch.fairlane("ports", "set", f"s1:{switch.interfaces[3]}", "--rate", "3Mbit")
    assert port(switch, 3).rate_bps == 3_000_000
    switch.fairlane("undo")
    assert port(switch, 3).rate_bps == RATE_BPS


def test_a_switch_that_is_gone_is_told() -> None:
    async def run() -> None:
        async with GnmiPorts(Endpoint("s9", "127.0.0.1:1")) as ports:
            await ports.ports()

    with pytest.raises(FairlaneError) as caught:
        asyncio.run(run())
    assert caught.value.code is ErrorCode.SWITCH_UNREACHABLE


def _documented() -> list[str]:
    """The commands on ports in docs/operate.md, in their order."""
    text = (REPOSITORY / "docs" / "operate.md").read_text(encoding="utf-8")
    block = text.split("<!-- run: ports -->\n```sh\n", 1)[1].split("```", 1)[0]
    lines = (line.split("#", 1)[0].strip() for line in block.splitlines())
    return [line.removeprefix("fairlane ") for line in lines if line]


def test_every_command_of_the_document_runs(switch: LiveSwitch) -> None:
    commands = _documented()
    assert len(commands) >= 8
    before = port(switch, 3)
    for command in commands:
        assert switch.fairlane(*shlex.split(command)), command
    switch.fairlane(
        "ports",
        "set",
        "s1:3",
        "--scheduler",
        "strict",
        "--queue-weight",
        "1=1",
        "--queue-bytes",
        "none",
        "--port-packets",
        "none",
    )
    switch.fairlane("ports", "set", "s1:3", "--rate", "2Mbit", "--queue-packets", str(QUEUE_PACKETS))
    after = port(switch, 3)
    assert (after.rate_bps, after.queue_packets, after.scheduler) == (
        before.rate_bps,
        before.queue_packets,
        before.scheduler,
    )


# ---- who may ---------------------------------------------------------------------------------------------------------


def test_an_observer_reads_and_changes_nothing(switch: LiveSwitch, tmp_path: Path) -> None:
    path_of_switch = binary("embedded")
    assert path_of_switch is not None
    del switch  # it says that this switch has gNMI
    make_certificates(tmp_path)
    name, grpc_port = f"gn{os.getpid() % 100_000}t1", unused_ports.unused()
    subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}x"], check=True)
    tls = [
        f"--tls-{what}={tmp_path / file}"
        for what, file in (("cert", "server.pem"), ("key", "server.key"), ("client-ca", "ca.pem"))
    ]
    command = [path_of_switch, "--grpc", f"127.0.0.1:{grpc_port}", "-i", f"1@{name}", *tls]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        assert process.stdout.readline()

        async def run() -> tuple[str, int | None]:
            def client(who: str) -> GnmiPorts:
                files = TlsFiles(tmp_path / "ca.pem", tmp_path / f"{who}.pem", tmp_path / f"{who}.key")
                return GnmiPorts(Endpoint("s1", f"127.0.0.1:{grpc_port}", 1, files))

            async with client("observer") as observer, client("controller") as controller:
                assert [one.port for one in await observer.ports()] == [1]
                with pytest.raises(FairlaneError) as caught:
                    await observer.set_port(1, PortChange(rate_bps=5))
                assert (await observer.ports())[0].rate_bps == 0
                await controller.set_port(1, PortChange(rate_bps=7_000))
                return caught.value.message, (await observer.ports())[0].rate_bps

        message, rate_bps = asyncio.run(run())
    finally:
        process.kill()
        process.wait(timeout=10)
        subprocess.run(["ip", "link", "delete", name], check=False)
    assert "Read-only: the client's certificate has the organizational unit observer" in message
    assert rate_bps == 7_000


def test_a_subscriber_that_does_not_read_costs_no_memory_and_nobody_else(switch: LiveSwitch) -> None:
    assert switch.process is not None
    status = Path(f"/proc/{switch.process.pid}/status")

    def rss_kb() -> int:
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmRSS"))

    every = gnmi.SubscriptionList(encoding=gnmi.Encoding.PROTO)
    every.subscription.append(subscription("/", "SAMPLE", sample_interval=10_000_000))

    async def run() -> int:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{switch.grpc_port}") as channel:
            call = gnmi_grpc.gNMIStub(channel).Subscribe(_forever(gnmi.SubscribeRequest(subscribe=every)))
            before = rss_kb()
            async with GnmiPorts(endpoint(switch)) as ports:
                for _ in range(100):
                    assert len(await ports.ports()) == 2
                    await asyncio.sleep(0.02)
            call.cancel()
        return rss_kb() - before

    assert asyncio.run(asyncio.wait_for(run(), 60)) < 40_000


def test_lanes_follow_the_port(switch: LiveSwitch) -> None:  # the last test: queues that were added stay
    with switch.loop():
        said = switch.fairlane("threshold", "set", "s1:3", "--scheme", "lanes")
        assert "the port has" in said
        assert switch.json("threshold", "show")[0]["lanes"] == 0
        said = switch.fairlane("ports", "set", "s1:3", "--scheduler", "drr", "--queues", "64")
        assert "policy of port 3 = 32 lanes, 16 lanes by hash" in said
        assert _lanes(switch) == 32
        assert switch.json("threshold", "set", "s1:3", "7")[0]["lanes"] == 32  # the loop knows the new queues too
        switch.fairlane("ports", "set", "s1:3", "--scheduler", "strict")
        assert _lanes(switch) == 0
        switch.fairlane("undo")
        assert _lanes(switch) == 32
        switch.fairlane("threshold", "set", "s1:3", "--scheme", "drop_tail")
        switch.fairlane("ports", "set", "s1:3", "--scheduler", "strict")


def _lanes(switch: LiveSwitch) -> int:
    (row,) = json.loads(switch.fairlane("threshold", "show", "--json"))
    return row["lanes"]
