"""The parts of bench/compare.py: who takes part, the clock, and the report."""
