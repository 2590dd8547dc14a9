"""What is the graph? Data sets, splits, adjacency, checks, statistics."""
