"""What does a person see? Progress and tables on a terminal."""
