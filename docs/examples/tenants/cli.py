# SPDX-License-Identifier: Apache-2.0
"""`fairlane tenant add|set|delete|list`, by the entry point `tenant = "mine.cli:app"` of the group `fairlane.commands`."""

from fairlane.cli import Objects

from .program import Tenant

app = Objects("tenants", "tenants", Tenant, "Tenant").app("Tenants: add, change, remove, list.")
