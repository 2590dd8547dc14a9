"""Compared with what? One file a model, each as its own paper defines it."""
