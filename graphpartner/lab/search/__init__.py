"""Which hyperparameters? Optuna over a declared space, judged on validation nodes alone."""
