"""Training over several devices and processes: sharding, start-up, collective operations.

`devices` places a batch on the devices of a mesh; `hosts` connects processes. Any module of
`brax.training` may import these two. Start reading at `devices`, then `hosts`.
"""
