# SPDX-License-Identifier: Apache-2.0
"""FQ-CoDel (RFC 8290): a queue for each flow, CoDel in each queue."""
