"""The server side of a fleet of devices that run "imprint join"."""
