"""One file a command: what it takes, and what it makes of it."""
