"""The command `brax`, and the subcommands that brax-core brings, one a file.

`command` is the command itself, whose subcommands are plugins. Other distributions register theirs
by the hook `brax_commands`. No module of the engine imports this folder. Start reading at
`command`.
"""

from brax.cli.command import main, root

__all__ = ["main", "root"]
