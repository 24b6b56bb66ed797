# SPDX-License-Identifier: Apache-2.0
"""AFD (Pan et al., CCR 2003): approximate fairness from one queue, by the share of each flow in a sample of recent arrivals."""
