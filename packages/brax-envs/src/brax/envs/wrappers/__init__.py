"""Wrappers, under the path that users know."""
