"""Adapters to other libraries, and the training wrappers under the path that users know."""
