"""Models in and pictures out."""
