"""Pictures without a screen: MuJoCo's renderer as a canvas, and where a model's cameras stand.

`brax.io.image` imports these modules and writes the files. Start reading at `canvas`.
"""
