"""The generalized pipeline: minimal coordinates and MuJoCo's soft constraints."""
