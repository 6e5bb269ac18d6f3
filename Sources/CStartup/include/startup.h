// Empty, but required for the module; startup.c has no public functions.
