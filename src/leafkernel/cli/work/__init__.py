"""One module for each command. They are imported when the command runs."""
