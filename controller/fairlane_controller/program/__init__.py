# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and a queueing scheme; users import it as `fairlane`.

| module       | what                                                                                        |
|--------------|---------------------------------------------------------------------------------------------|
| `contract`   | `Program`, its configuration (`Config`), `Plan` and `Wanted`                                |
| `settings`   | bases of its pydantic models: `Settings` of a port, `Section` of the file                   |
| `quantities` | types of their fields: durations, rates, sizes, packets, cells, DSCPs                       |
| `rows`       | what it shows: `Column`, `Kind`, `Reason`, `Row`                                            |
| `control`    | `SwitchControl`: what it does at run time on a switch, with `on_digest`, `every`            |
| `learned`    | `LearnedTable`: entries that a digest asks for, and that go when nothing matches them;        |
|              | `Numbering`: slots and ids that are given once                                              |
| `registry`   | finding programs by name, entry point or folder                                             |
| `setup`      | a plan into one switch                                                                      |
"""
