# SPDX-License-Identifier: Apache-2.0
"""Cebinae (Yu, Sonchack, Liu, SIGCOMM 2022): the largest flows of a saturated port are taxed, so that the others can grow."""
