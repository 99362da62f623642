"""The positional pipeline: extended position-based dynamics, its joints solved over the tree."""
