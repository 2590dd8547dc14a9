"""What was claimed, what holds? Everything that only the paper's claims need; only commands import it."""
