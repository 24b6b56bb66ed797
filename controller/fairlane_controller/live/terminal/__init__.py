# SPDX-License-Identifier: Apache-2.0
"""The picture in a terminal: `shapes` bars and sparklines; `frame` the whole screen; `details` a port's flows and VCs; `keys` the keyboard; `app` all of it, live."""
