"""What is measured, how it is run, and how it is shown."""
