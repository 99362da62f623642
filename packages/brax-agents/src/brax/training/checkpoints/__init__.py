"""Training states and parameters on disk: run directories, checkpoints and how a run resumes.

A checkpoint becomes visible by one rename, after its files are on disk: see `writer`. The runner,
the commands and the policies import these modules; none of them imports an agent. Start reading at
`checkpoint`.
"""
