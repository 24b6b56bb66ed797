# SPDX-License-Identifier: Apache-2.0
"""Switches that run, from Python: read them as data frames, set ports, use any command of `fairlane`."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairlane_controller.cli.options import SWITCHES
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.config.apply import Applied, apply, apply_to_port
from fairlane_controller.config.read import Loaded, Source, parse
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_input, find_by_name
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.pictures import need_switches, take_two
from fairlane_controller.state.run_state import RunState

if TYPE_CHECKING:
    import pandas as pd

_T = TypeVar("_T")
_COMMAND = "from fairlane_controller.cli.main import main; main()"
TIMEOUT_S = 120.0


def connect(topology: str | Path | None = None, *, switches: str | Sequence[str] = ()) -> Network:
    """Find switches that run. No connection is kept open: each call makes its own.

    Args:
        topology: Name or run-state folder of a running topology (`make run`); None: the only one.
        switches: Some of its switches, or addresses `s1=127.0.0.1:50051` of switches without a topology.

    Raises:
        FairlaneError: No such topology or switch.

    """
    names = [switches] if isinstance(switches, str) else list(switches)
    return Network(resolve(None if topology is None else str(topology), names), tuple(names))


@dataclass(frozen=True)
class Network:
    """Switches, and the topology that they belong to."""

    targets: Targets
    switches: tuple[str, ...] = ()
    """Those of `connect`."""

    def snapshot(self, interval_s: float = 0.0) -> Snapshot:
        """Everything that the switches and the loop say now: what `fairlane status`, `flows` and `drops` show.

        Args:
            interval_s: Rates are over this time, in seconds; 0: at once, without rates.

        Raises:
            FairlaneError: A switch does not answer, or has no program.

        """
        return need_switches(_wait(take_two(self.targets, interval_s)))

    def frame(self, rows: str = "ports", interval_s: float = 0.0) -> pd.DataFrame:
        """One kind of rows of a snapshot as a data frame: `ports`, `drops`, `switches`, or objects of the program (`flows`, `vcs`).

        Args:
            rows: Which rows.
            interval_s: Rates are over this time, in seconds.

        Raises:
            FairlaneError: As `snapshot`; UNKNOWN_NAME for other rows.

        """
        import pandas as pd

        document = self.snapshot(interval_s).to_json()
        kinds: dict[str, Any] = {name: value for name, value in document.items() if isinstance(value, list)}
        return pd.DataFrame(find_by_name("kind of rows", rows, kinds))

    def set(self, port: str, **settings: Any) -> Applied:
        """Set a port, as `[[ports]]` of fairlane.toml does; what is not named stays. One change of `fairlane undo`.

        Args:
            port: `s1:3`.
            settings: The program's settings and those of every port (`rate="2Mbit"`).

        Returns:
            What was written, by switch.

        Raises:
            FairlaneError: A setting that there is not, a value that is not allowed, a switch that refuses; nothing is changed.
        """
        switch, colon, number = port.rpartition(":")
        if not colon or not number.isdigit():
            raise bad_input(f"port {port!r}: must be SWITCH:NUMBER, such as s1:3")
        run = self.targets.need_run()
        done, _ = _wait(apply_to_port(run, (switch, int(number)), dict(settings), "fairlane.Network.set"))
        return done

    def apply(self, configuration: Mapping[str, Any]) -> Applied:
        """Apply a configuration (docs/configuration.md).

        Args:
            configuration: The dictionary that its TOML would be.

        Returns:
            What was written, by switch.

        Raises:
            FairlaneError: A mistake in it; what a switch refused, with everything as it was; switches without a topology.
        """
        run = self.targets.need_run()
        return _wait(apply(_loaded(configuration, run), run, "fairlane.Network.apply"))

    def command(self, *words: str) -> Any:
        """Run any command of `fairlane` that has `--json`, in a process of its own. Where it has `--switch`, it means these switches.

        Args:
            words: `"threshold", "set", "s1:3", "5"`.

        Returns:
            Its JSON document.

        Raises:
            FairlaneError: What the command would print.
        """
        folder = self.targets.folder
        where = [f"--state={folder}"] if folder else [f"--switch={one}" for one in self.switches]
        line = [sys.executable, "-c", _COMMAND, *words, *where, "--json"]
        given = {SWITCHES: " ".join(self.switches)} if folder and self.switches else {}
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S, env={**os.environ, **given})
        try:
            document = json.loads(done.stdout or done.stderr)
        except ValueError:
            problem = done.stderr.strip() or "the command printed nothing"
            raise ErrorCode.INTERNAL(problem) from None
        if not done.stdout:
            raise FairlaneError.from_json(document["error"])
        return document


def _loaded(configuration: Mapping[str, Any], run: RunState) -> Loaded:
    source = Source("configuration")
    return Loaded(parse({"program": run.program, **configuration}, source), source)


def _wait(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end, also where an event loop runs already (a notebook)."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
