// Only makes the target a module: startup.c needs no calls.
