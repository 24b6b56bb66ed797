# SPDX-License-Identifier: Apache-2.0
"""The papers' equations as pure functions; one file a paper."""
