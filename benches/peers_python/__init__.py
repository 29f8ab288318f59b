"""One measurement of one Python scheduler, in the process that it is started in."""
