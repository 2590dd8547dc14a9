"""Who should talk to whom? The k-hop cosine join, the enhanced propagation matrix, edge quality."""
