"""The parts of bench/gpu.py: the library's binding, the limits, the peers, the clock, the works and the report."""
