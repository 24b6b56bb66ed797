# SPDX-License-Identifier: Apache-2.0
"""For programs. Words and numbers for people: units, bounded documents, problems of configurations."""

from fairlane_controller.documents import DocumentError as DocumentError
from fairlane_controller.documents import parse_toml as parse_toml
from fairlane_controller.problems import bad_config as bad_config
from fairlane_controller.problems import describe as describe
from fairlane_controller.units import counted as counted
from fairlane_controller.units import format_rate as format_rate
from fairlane_controller.units import format_size as format_size
from fairlane_controller.units import format_time as format_time
from fairlane_controller.units import parse_count as parse_count
from fairlane_controller.units import plain_value as plain_value
