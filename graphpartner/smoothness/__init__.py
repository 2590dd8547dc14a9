"""Has it gone smooth? Dirichlet energy, MADGap, singular values, energy bounds."""
