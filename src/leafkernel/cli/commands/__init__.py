"""One file a command: its options and its help. The work is in :mod:`leafkernel.cli.work`."""
