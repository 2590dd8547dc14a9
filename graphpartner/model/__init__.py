"""What is learned? GPNN, its propagation and its losses: the paper's equations, and only those."""
