"""What does a reader of the results see? Tables, figures and pages from the files under results/."""
