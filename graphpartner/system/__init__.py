"""What machine is this? Errors, progress, devices, threads, files, meters."""
