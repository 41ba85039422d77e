"""Ratios against peers, measured side by side in one process. Run with `make bench`."""
