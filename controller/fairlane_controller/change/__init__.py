# SPDX-License-Identifier: Apache-2.0
"""The one way in which switches are changed: what is there before and after (`changeset`), written all or nothing."""
