"""What was claimed, what holds? One YAML an experiment, the runs behind it, verdicts on the paper's findings."""
