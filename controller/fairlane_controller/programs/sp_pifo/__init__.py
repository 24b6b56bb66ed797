# SPDX-License-Identifier: Apache-2.0
"""SP-PIFO (Alcoz et al., NSDI 2020): packets leave nearly by rank, from a few strict-priority queues."""
