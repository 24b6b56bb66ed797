# SPDX-License-Identifier: Apache-2.0
"""The control plane of `p4src/ena.p4`: a switch's far-side ports written and read. It needs no loop.

| module | what                                                                              |
|--------|-----------------------------------------------------------------------------------|
| `apply` | routes and far-side ports of a run state into a switch; one port more or less     |
| `reads` | what a switch says of its far-side ports                                          |
"""
