# SPDX-License-Identifier: Apache-2.0
"""AFQ (Sharma et al., NSDI 2018): fair queueing by rounds, from a count-min sketch and a calendar of queues."""
