"""Agents that learn on Brax environments.

What a trainer of your own builds on is at the top: `agent`, `config`, `settings`, `learner`,
`policies` and `types`. The other modules here re-export, under the paths that users import, what
lives in a folder. Start reading at `agent`: its `train` names every stage of a run, in order.
"""
