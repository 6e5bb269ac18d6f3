"""Trains the head of an Imprint model on many devices by federated averaging.

The arrays of a message are the change to the head relative to the model file, so training starts with zeros. FedAvg weights the changes of
the devices by their numbers of photos, as `imprint merge` does. At the end, the change becomes a personalization, and `imprint merge`
applies it to the model.
"""

import tempfile
from logging import INFO
from pathlib import Path

from flwr.app import ConfigRecord, Context
from flwr.common import log
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from fleet.imprint import Head, merge, write_personalization

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    settings = context.run_config
    head = Head.of(settings["imprint"], settings["model"])
    # FedAvg can be replaced with FedAdam, FedMedian, Krum or another strategy of Flower that averages arrays.
    strategy = FedAvg(
        fraction_train=settings["train-share"],
        fraction_evaluate=settings["evaluate-share"],
        min_train_nodes=settings["devices"],
        min_evaluate_nodes=settings["devices"],
        min_available_nodes=settings["devices"],
    )
    # The devices refuse messages for another model.
    base = ConfigRecord({"imprint.base": head.base})
    result = strategy.start(
        grid,
        initial_arrays=head.zeros(),
        num_rounds=settings["rounds"],
        timeout=settings["timeout"],
        train_config=base,
        evaluate_config=ConfigRecord(base),
    )
    if not result.arrays:
        raise RuntimeError("No device sent a change, so there is no new model. The log above shows the replies of the devices.")
    with tempfile.TemporaryDirectory() as folder:
        change = Path(folder) / "change"
        write_personalization(change, head, result.arrays)
        merge(settings["imprint"], settings["model"], change, settings["output"])
    log(INFO, "Wrote %s", settings["output"])
