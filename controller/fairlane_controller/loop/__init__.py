# SPDX-License-Identifier: Apache-2.0
"""The live control loop: what it decides is pure and takes the time as an argument; what it does is in `run`."""
