"""Flower requires the entry point of a client app, but the devices run "imprint join"."""

from flwr.clientapp import ClientApp

app = ClientApp()
