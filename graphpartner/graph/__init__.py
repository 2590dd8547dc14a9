"""What is the graph? Data sets, people's own files, splits, adjacency, checks."""
