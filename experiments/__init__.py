"""Experiments on real data. Run `python -m experiments --help` in the root of a clone."""
