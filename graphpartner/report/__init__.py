"""What does a person see? Progress, tables, figures."""
