"""Predictions against published measurements: our own error, in numbers."""
