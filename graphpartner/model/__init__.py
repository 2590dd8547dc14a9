"""The model: GPNN, propagation, losses, calibration and label propagation."""
