"""Published numbers beside our own: experiments as files, a journal of runs, results, verdicts on findings."""
