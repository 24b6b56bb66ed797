# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch web`: a read-only live page. `listen` where it may listen; `points` what the history keeps; `hub` one sampler a topology for
all viewers; `server` the routes and their safety; `static/` the page, which loads nothing from anywhere else.
"""
