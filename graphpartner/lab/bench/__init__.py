"""How fast is it? Ratios against peers written plainly, measured in the same run."""
