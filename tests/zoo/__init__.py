"""Graphs of every kind that the hosts allow, to compare guarded with plain."""
