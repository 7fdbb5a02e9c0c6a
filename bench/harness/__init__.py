"""The parts of the benchmark driver; bench/run.py puts them together."""
