# SPDX-License-Identifier: Apache-2.0
"""A client for `--dry-run`: reads the switch as it is, makes the same checks, keeps the updates instead of writing them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, cast

from finsy import P4Schema, Switch

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import Endpoint, PipelineFiles, SwitchClient
from fairlane_controller.switch.faults import Refusal
from fairlane_controller.switch.updates import Plain, plain_updates


class DryClient(SwitchClient):
    """`SwitchClient` with the arguments of a writer that writes nothing: it takes part in no election.

    `updates` are what it was asked to write. With `pipeline` it tells by the cookie whether the program would be loaded (`loads`);
    the switch then counts as empty, as it would be.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        write: bool = True,
        pipeline: PipelineFiles | None = None,
        force_pipeline: bool = False,
        election_id: int | None = None,
        require_primary: bool = True,
        **options: Any,
    ) -> None:
        del write, election_id, require_primary
        super().__init__(endpoint, **options)
        self._wanted = pipeline
        self._forced = force_pipeline
        self.updates: list[Plain] = []
        self.loads = False
        "Whether the program would be loaded: every entry and counter lost."

    async def _connect(self, timeout_s: float) -> None:
        await super()._connect(timeout_s)
        if self._wanted is None:
            return
        self._wanted.check()
        try:
            schema = P4Schema(self._wanted.p4info, self._wanted.json)
        except Exception as ex:  # what the parsers raise
            raise FairlaneError(ErrorCode.BAD_FILE, f"{self._wanted.p4info}: not a P4Info text file: {ex}") from None
        self.loads = self._forced or not self.has_pipeline or await self.cookie() != schema.p4cookie
        if self.loads:
            await self.close()
            self._switch = cast("Switch", _Empty(schema))

    def _need_writer(self) -> None:
        self.need_pipeline()

    async def write(self, updates: Sequence[Any]) -> None:
        """Check and keep."""
        self.need_pipeline()
        try:
            self.updates += plain_updates(updates, self.switch.p4info)
        except FairlaneError as ex:
            raise FairlaneError(ex.code, f"{self.endpoint}: {ex.message}") from None

    async def write_each_with_reasons(self, updates: Sequence[Any]) -> dict[int, Refusal]:
        """Check and keep; nothing is refused. `write_each`, a ChangeSet and `enable_digest` come here too."""
        await self.write(updates)
        return {}


class _Empty:
    """A switch that has just got its program."""

    is_primary = True
    primary_id = 0

    def __init__(self, schema: P4Schema) -> None:
        self.p4info = schema

    async def read(self, entities: Iterable[Any]) -> AsyncIterator[Any]:
        """Nothing is there."""
        for _ in ():
            yield entities

    async def __aexit__(self, *_: object) -> None:
        """Nothing to end."""
