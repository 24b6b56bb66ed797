# SPDX-License-Identifier: Apache-2.0
"""PACKS (Alcoz et al., NSDI 2025): a few strict-priority queues that serve and refuse nearly as a PIFO does."""
