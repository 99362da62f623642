"""Augmented random search."""
