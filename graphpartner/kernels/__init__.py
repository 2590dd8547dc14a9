"""What must be fast? One operation a file: its formula in torch, and compiled loops beside it."""
