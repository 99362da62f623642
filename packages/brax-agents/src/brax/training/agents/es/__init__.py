"""Evolution strategies."""
