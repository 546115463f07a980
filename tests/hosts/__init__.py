"""Tests of the guard on its hosts as a whole."""
