# SPDX-License-Identifier: Apache-2.0
"""GFR's control: VCs from a configuration to entries of `p4src/gfr.p4`, and kept current while VCs come and go.

    gfr.toml ─► config ─► check (with the run state), paths, admission ─► allocation ─► entries ─► apply
                                                                                          ▲
                                                        counters of vc_share ─► activity ─┘ N, w_i, weights

`config.py` reads, `check.py` refuses, `store.py` remembers; `deploy.py` puts the parts together for all switches.
"""
