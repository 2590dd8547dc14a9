"""The models that GPNN is compared with: one file per model, each as its own paper defines it."""
