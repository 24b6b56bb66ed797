# SPDX-License-Identifier: Apache-2.0
"""The key of the fallback slots' hash: random, so that an attacker cannot aim flows at one slot."""

from __future__ import annotations

import secrets

from finsy import P4TableAction, P4TableEntry

from fairlane_controller.switch.client import SwitchClient

TABLE = "hash_key"
ACTION = "set_hash_key"
WORDS, WORD_BITS = 11, 64


async def give_hash_key(client: SwitchClient) -> None:
    """Give the switch a key where it has none; one that is there stays, since another one moves flows to other slots.

    A program without such a table needs none.
    """
    if TABLE not in client.table_names():
        return
    held = await client.read_default(TABLE)
    if held is not None and any(held.args.values()):
        return
    key = {f"key_{word}": secrets.randbits(WORD_BITS) for word in range(WORDS)}
    await client.write([~P4TableEntry(TABLE, is_default_action=True, action=P4TableAction(ACTION, **key))])
