"""Converts networks of others to Systole's network files (docs/network-format.md)."""
