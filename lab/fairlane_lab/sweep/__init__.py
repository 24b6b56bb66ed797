# SPDX-License-Identifier: Apache-2.0
"""Many runs: on one core, several, Mininet or a dask scheduler; interrupted, gone on with, and failing one by one.

runners.py    the runner of a runtime, one run of it, Mininet  workers.py  processes of this machine, dask.distributed
campaign.py   what is to be run, its folder, and the script that makes the folder's runs again

Nothing is imported here: a worker process needs runners.py alone, and starts in a fraction of a second.
"""
