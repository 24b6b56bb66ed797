# SPDX-License-Identifier: Apache-2.0
"""One sampled picture of a whole topology, for everything that shows it: `watch`, `web`, metrics and the read commands.

`model` the rows; `reader` one long-lived connection a switch; `view` one reading of it by its program's contract;
`queues` what P4Runtime cannot say; `loop_view` what the control loop says; `source` all of them together; `sampler` one source for many
viewers, with a bounded history; `events` the event log's end.
"""
