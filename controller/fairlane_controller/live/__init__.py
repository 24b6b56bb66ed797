# SPDX-License-Identifier: Apache-2.0
"""One snapshot of a whole topology for all views: `watch`, `web`, metrics, exports and the commands that read.

`model` has the rows; `view` the connection to one switch and its readings; `source` all switches and the loop; `pictures` snapshots for
commands; `sampler` one source for many viewers, with a bounded history; `shown` the texts of values and the tables; `terminal` the screen of
`watch`; `events` the event log.
"""
