"""The work of each command, one file each. These modules are imported when a command runs."""
