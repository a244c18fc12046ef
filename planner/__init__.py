"""Headroom: what hardware and settings serve this LLM to these users, and what it costs."""
