"""Measurements; nothing here is installed with the library."""
