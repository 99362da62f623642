"""Training states and parameters on disk: run directories, checkpoints, and how a run resumes.

A checkpoint is made atomic in `Writer._commit` of `writer.py`: its files are written under a
temporary name and synced, and one rename makes it visible. The runner, the commands and the
policies import these modules; none of them imports an agent. Start reading at `checkpoint.py`,
then `writer.py`.
"""
