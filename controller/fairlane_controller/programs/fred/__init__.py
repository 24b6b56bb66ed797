# SPDX-License-Identifier: Apache-2.0
"""FRED (Lin, Morris, SIGCOMM 1997): drops by the packets that each flow has waiting, against the average of the active flows."""
