# SPDX-License-Identifier: Apache-2.0
"""AIFO (Yu et al., SIGCOMM 2021): one FIFO queue that refuses by rank what a PIFO would drop later."""
