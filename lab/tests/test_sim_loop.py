# SPDX-License-Identifier: Apache-2.0
"""The event loop in virtual time: timers at their exact instant, messages that wake a task, the same order each time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from fairlane_lab.sim.loop import VirtualTimeLoop


class World:
    """A world in which a message comes at each of some instants."""

    def __init__(self, *messages_ns: int) -> None:
        self.now_ns = 0
        self.runs = 0
        self._messages_ns = sorted(messages_ns)

    def run_until(self, t_ns: int, stop_on_messages: bool = False) -> int:
        self.runs += 1
        due = [at for at in self._messages_ns if at > self.now_ns]
        self.now_ns = min(t_ns, due[0]) if stop_on_messages and due else t_ns
        return self.now_ns


@pytest.fixture
def world() -> World:
    return World()


def loop_of(world: World) -> VirtualTimeLoop:
    return VirtualTimeLoop(world, lambda: None)


def test_timers_fire_at_their_exact_instant_and_in_order(world: World) -> None:
    async def main() -> list[tuple[str, int]]:
        fired: list[tuple[str, int]] = []

        async def after(name: str, delay_s: float) -> None:
            await asyncio.sleep(delay_s)
            fired.append((name, world.now_ns))

        await asyncio.gather(after("c", 3.0), after("a", 0.1), after("b", 0.1), after("d", 86_400 * 3 + 1e-9))
        return fired

    loop = loop_of(world)
    assert loop.run_until_complete(main()) == [
        ("a", 100_000_000),
        ("b", 100_000_000),
        ("c", 3_000_000_000),
        ("d", 259_200_000_000_001),
    ]
    loop.close()


def test_ten_thousand_periods_do_not_drift(world: World) -> None:
    async def main() -> int:
        for _ in range(10_000):
            await asyncio.sleep(0.0001)
        return world.now_ns

    loop = loop_of(world)
    assert loop.run_until_complete(main()) == 1_000_000_000
    loop.close()


def test_a_message_wakes_whoever_waits_for_it_at_its_instant() -> None:
    world = World(1_234, 2_000_000_000, 9_000_000_000)
    queue: asyncio.Queue[int] = asyncio.Queue()
    loop = VirtualTimeLoop(world, lambda: queue.put_nowait(world.now_ns))
    seen: list[tuple[int, int]] = []

    async def listen() -> None:
        while True:
            said = await queue.get()
            seen.append((said, world.now_ns))

    async def main() -> None:
        listener = asyncio.create_task(listen())
        await asyncio.sleep(3.0)
        listener.cancel()

    loop.run_until_complete(main())
    loop.close()
    assert [at for at, now in seen if at == now] == [1_234, 2_000_000_000, 3_000_000_000]


def test_where_nobody_listens_messages_stop_nothing() -> None:
    world = World(*range(0, 1_000_000, 1000))
    loop = VirtualTimeLoop(world, lambda: None, stop_on_messages=False)
    loop.run_until_complete(asyncio.sleep(1.0))
    loop.close()
    assert world.runs == 1


def test_time_limits_are_limits_of_virtual_time(world: World) -> None:
    async def main() -> int:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 3600.0)  # in real time this test would not end in its own
        return world.now_ns

    loop = loop_of(world)
    assert loop.run_until_complete(main()) == 3600_000_000_000
    loop.close()


def test_a_cancelled_timer_does_not_move_time(world: World) -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        loop.call_later(100.0, lambda: None).cancel()
        await asyncio.sleep(0.5)
        return world.now_ns

    loop = loop_of(world)
    assert loop.run_until_complete(main()) == 500_000_000
    loop.close()


def test_a_deadlock_is_said_and_does_not_hang(world: World) -> None:
    loop = loop_of(world)
    with pytest.raises(RuntimeError, match="every task waits and no timer is set"):
        loop.run_until_complete(asyncio.Event().wait())
    loop.close()


def test_a_wake_up_costs_little_beside_one_of_asyncio_s_own(world: World) -> None:
    """As a ratio of what the same machine needs in the same minute: about 2 here."""

    async def main(pause_s: float) -> None:
        for _ in range(2_000):
            await asyncio.sleep(pause_s)

    def best_s(make: Callable[[], asyncio.AbstractEventLoop], pause_s: float) -> float:
        best = float("inf")
        for _ in range(5):
            loop = make()
            started = time.perf_counter()
            loop.run_until_complete(main(pause_s))
            best = min(best, time.perf_counter() - started)
            loop.close()
        return best

    ours, theirs = best_s(lambda: loop_of(world), 0.001), best_s(asyncio.new_event_loop, 1e-9)
    print(f"a wake-up of the virtual loop costs {ours / theirs:.2f} of asyncio's")
    assert ours < 20 * theirs
