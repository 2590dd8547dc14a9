"""Graph enhancement: the k-hop cosine join, the enhanced propagation matrix, and the quality of its edges."""
