"""Pictures without a screen: a canvas on MuJoCo's renderer, and the poses of a model's cameras.

`brax.io.image` imports these modules and writes the files. Start reading at `canvas`.
"""
