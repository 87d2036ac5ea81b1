"""One file a command: what it does. These modules are imported when a command runs."""
