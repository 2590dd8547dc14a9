"""Operations that must be fast: each with its formula in PyTorch, and compiled loops beside it."""
