"""The spring pipeline: maximal coordinates, joints as stiff springs solved for the whole tree."""
