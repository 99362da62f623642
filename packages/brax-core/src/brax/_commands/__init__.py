"""The subcommands of `brax` that brax-core brings, one a file."""
