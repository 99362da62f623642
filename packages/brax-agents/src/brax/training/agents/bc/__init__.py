"""Behaviour cloning, by DAgger."""
