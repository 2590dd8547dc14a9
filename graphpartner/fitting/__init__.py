"""Which settings for a graph nobody has seen? Candidates, tuning, an ensemble, calibration, the model folder."""
