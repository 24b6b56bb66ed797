# SPDX-License-Identifier: Apache-2.0
"""`fairlane hosts check`: tries every variant on the running kernel, since some rely on what no kernel promises.

Map: `gate` sits between two hosts and holds, drops or damages what a rule says; `bed` puts them together in throw-away
namespaces; `probes` are the trials, and runs them; `results` keeps what came out for `use` to consult.
"""
