"""The parts of the viewer page: what it shows (`scene`) and how that moves (`motion`).

The page's own code is in `packages/brax-io/viewer`, and is built into `bundle.js` beside this file.
"""
