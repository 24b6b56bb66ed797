# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch web`: a read-only live page. `hub` has one sampler a topology for all viewers and says what the page shows; `server` the
routes, where it may listen, and who is answered; `static/` the page, which loads nothing from anywhere else.
"""
