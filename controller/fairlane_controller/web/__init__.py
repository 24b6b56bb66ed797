# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch web`: a read-only live page. `hub` has one sampler for all viewers and makes what the page shows; `server` is HTTP."""
