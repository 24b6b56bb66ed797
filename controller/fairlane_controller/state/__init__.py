# SPDX-License-Identifier: Apache-2.0
"""Files that outlive a process: the topology's run state (read) and the loop's own state (read and written)."""
