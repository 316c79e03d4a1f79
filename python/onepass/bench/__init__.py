"""Measures onepass against what a user would pick instead."""
