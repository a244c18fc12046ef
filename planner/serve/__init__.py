"""Headroom for others: the dashboard as a process.

In: an address and a port. Out: a server that runs until it is stopped.
"""

from planner.serve.page import serve_dashboard

__all__ = ["serve_dashboard"]
