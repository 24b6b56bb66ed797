# SPDX-License-Identifier: Apache-2.0
"""The traffic tool: many TCP flows, greedy or of N bytes, to a sink that discards; both ends write JSON lines.

Map: `options` are the two ends' options; `send` and `sink` are the ends; `records` writes and reads the JSON lines;
`goodput` turns a sink's samples into bytes in a window; `__main__` is `fairlane-traffic`.
"""
