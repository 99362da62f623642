"""What the pipelines in maximal coordinates share: links, each with its frame and velocity."""
