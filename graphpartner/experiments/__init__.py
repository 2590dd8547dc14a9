"""What was claimed, what holds? Experiments with their published results, ``reproduce`` and ``search``."""
