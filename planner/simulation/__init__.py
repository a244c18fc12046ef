"""Discrete-event simulation of the engine's step loop, from request arrays to per-request records."""
