# SPDX-License-Identifier: Apache-2.0
"""The picture in a terminal: `frame` is the whole screen; `app` draws it again and again, and obeys the keyboard."""
