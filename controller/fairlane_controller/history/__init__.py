# SPDX-License-Identifier: Apache-2.0
"""Changes by hand: made whole or not at all, recorded before they are made, undone.

| file | what |
|---|---|
| `sites.py` | the switches of a change; a running loop writes what others change |
| `steps.py` | the parts of a change: entities of switches, ports, options of the loop; what takes each one back |
| `undo.py` | the journal; a change from its begin to its end; undo; what a killed process left |

    async with changing(folder, "threshold set 5") as change, Sites(run) as sites:   # one change at a time
        client = await sites.writer("s1")
        ...
        await make([ChangeSet({"s1": changes})], sites, {"policy/s1/3/0": settings})

`make` writes the undo of all parts and the new documents into the state file, in one transaction, before it makes the first part. Where a
part is refused, it takes the others back, and the record goes. Where the process is killed, the next change, or the next loop, takes
back what the record says: the lock's file names a change that was not ended. Refusal, kill and `fairlane undo` take back by the
same steps, as the journal has them.
"""
