"""What was published, what do we measure? Experiments as files, a journal of runs, tables, verdicts."""
