# SPDX-License-Identifier: Apache-2.0
"""Switches that run, from Python: read them as data frames, set ports, use any command of `fairlane`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.config.apply import Applied, apply, with_last_applied
from fairlane_controller.config.read import Loaded, Source, parse
from fairlane_controller.config.show import port_in_force
from fairlane_controller.errors import ErrorCode, FairlaneError
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
    return Network(resolve(None if topology is None else str(topology), names))


@dataclass(frozen=True)
class Network:
    """Switches, and the topology that they belong to."""

    targets: Targets

    def snapshot(self, interval_s: float = 0.0) -> Snapshot:
        """Everything that the switches and the loop say now: what `fairlane status`, `flows` and `drops` show.

        Args:
            interval_s: Rates are over this time, in seconds; 0: at once, without rates.

        Raises:
            FairlaneError: A switch does not answer, or has no program.

        """
        return need_switches(_wait(take_two(self.targets, interval_s))[0])

    def frame(self, rows: str = "ports", interval_s: float = 0.0) -> pd.DataFrame:
        """One kind of rows of a snapshot as a data frame: `ports`, `drops`, `switches`, or objects of the program (`flows`, `vcs`).

        Args:
            rows: Which rows.
            interval_s: Rates are over this time, in seconds.

        Raises:
            FairlaneError: As `snapshot`; UNKNOWN_NAME for other rows.

        """
        import pandas as pd

        return pd.DataFrame(rows_of(self.snapshot(interval_s), rows))

    def set(self, port: str, **settings: Any) -> Applied:
        """Set a port, `s1:3`: the program's settings and those of every port (`rate="2Mbit"`), as `[[ports]]` of fairlane.toml; what is not named stays.

        Checked as a whole, applied as a whole, one change of `fairlane undo`.

        Raises:
            FairlaneError: A setting that there is not, a value that is not allowed, a switch that refuses.

        """
        switch, colon, number = port.rpartition(":")
        if not colon or not number.isdigit():
            raise FairlaneError(ErrorCode.BAD_INPUT, f"port {port!r}: must be SWITCH:NUMBER, such as s1:3")
        row = _wait(port_in_force(self.targets.need_run(), switch, int(number)))
        loaded, run = self._loaded({"ports": [{**row, **settings}]})
        return _wait(apply(loaded, run, "fairlane.Network.set", with_last_applied(loaded, run)))

    def apply(self, configuration: Mapping[str, Any]) -> Applied:
        """Apply a configuration (docs/configuration.md) given as the dictionary that its TOML would be.

        Raises:
            FairlaneError: A mistake in it; what a switch refused, with everything as it was; switches without a topology.

        """
        loaded, run = self._loaded(configuration)
        return _wait(apply(loaded, run, "fairlane.Network.apply"))

    def _loaded(self, configuration: Mapping[str, Any]) -> tuple[Loaded, RunState]:
        run, source = self.targets.need_run(), Source("configuration")
        return Loaded(parse({"program": run.program, **configuration}, source), source), run

    def command(self, *words: str) -> Any:
        """Any command of `fairlane` that has `--json`, in a process of its own: `command("threshold", "set", "s1:3", "5")`.

        Returns:
            Its JSON document.

        Raises:
            FairlaneError: What the command would print.

        """
        folder = self.targets.folder
        where = [f"--switch={one.name}={one.grpc}@{one.device_id}" for one in self.targets.endpoints]
        options = [f"--state={folder}"] if folder is not None else where
        done = subprocess.run(
            [sys.executable, "-c", _COMMAND, *words, *options, "--json"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise _error_of(done.stderr) from None


def rows_of(snapshot: Snapshot, rows: str) -> list[dict[str, Any]]:
    """Rows of a snapshot as plain data. Raises FairlaneError (UNKNOWN_NAME) with the kinds that it has."""
    document = snapshot.to_json()
    kinds = [name for name, value in document.items() if isinstance(value, list)]
    if rows not in kinds:
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"there are no rows {rows!r}; there are: {', '.join(kinds)}")
    return document[rows]


def _error_of(text: str) -> FairlaneError:
    """The error that a command with --json has printed."""
    try:
        return FairlaneError.from_json(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return FairlaneError(ErrorCode.INTERNAL, text.strip() or "the command printed nothing")


def _wait(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end, also where an event loop runs already (a notebook)."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
