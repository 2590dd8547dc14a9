"""How is it learned? Replicas, random draws, stopping, presets, results."""
