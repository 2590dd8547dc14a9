"""Fit a model to any graph: candidates, tuning, calibration, the estimate, the model folder."""
