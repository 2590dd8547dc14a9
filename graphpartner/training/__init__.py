"""How is it learned? Settings, presets, replicas, stopping, teachers, runs."""
