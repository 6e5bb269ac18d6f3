"""Writes messages.json: messages of the Fleet API, encoded by Flower's own classes.

    pip install "flwr>=1.42"
    python3 Tests/ImprintFleetTests/Fixtures/make_messages.py > Tests/ImprintFleetTests/Fixtures/messages.json

Each message is in hexadecimal digits. The values in the comments of FleetCodingTests.swift are those of this script.
"""

import json
import sys

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, MetricRecord, RecordDict
from flwr.app.message import make_message
from flwr.app.metadata import Metadata
from flwr.common.serde import message_to_proto, metadata_to_proto
from flwr.proto import fleet_pb2, heartbeat_pb2, message_pb2
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree

NODE = 17446744073709551615  # beyond int64
RUN = 12345678901234567890


def metadata(**changes):
    values = {
        "run_id": RUN, "message_id": "", "src_node_id": 1, "dst_node_id": NODE, "reply_to_message_id": "", "group_id": "7",
        "created_at": 1790000000.25, "ttl": 3600.5, "message_type": "train", "src_task_id": 5, "dst_task_id": None,
    }
    return Metadata(**{**values, **changes})


def encoded(message):
    """Returns the parts of a message: what is pushed, its object tree, and its objects."""
    message.metadata.__dict__["_message_id"] = message.object_id
    proto = message_to_proto(message)
    if message.has_content():
        proto.content.Clear()
        proto.content.SetInParent()
    return {
        "message": proto.SerializeToString(deterministic=True).hex(),
        "tree": get_object_tree(message).SerializeToString(deterministic=True).hex(),
        "id": message.object_id,
        "objects": {name: value.deflate().hex() for name, value in get_all_nested_objects(message).items()},
    }


def request(message):
    return message.SerializeToString(deterministic=True).hex()


weights = np.array([[0.5, -1.25], [2, 0], [3e-5, 65504]], np.float32)
biases = np.array([0.125, -0.125], np.float32)
arrays = ArrayRecord({"head.weight": Array(weights), "head.bias": Array(biases)})

instruction = make_message(
    metadata(),
    content=RecordDict(
        {
            "arrays": arrays,
            "config": ConfigRecord({"server-round": 3, "imprint.base": "d1gést", "on": True, "rate": -0.5, "list": [1, 2]}),
        }
    ),
)
reply = make_message(
    metadata(src_node_id=NODE, dst_node_id=1, reply_to_message_id="ab", created_at=1790000060.0, ttl=3540.75, src_task_id=None, dst_task_id=5),
    content=RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 20, "loss": 0.75, "change": -3})}),
)
error = make_message(
    metadata(src_node_id=NODE, dst_node_id=1, reply_to_message_id="ab", created_at=1790000060.0, ttl=3540.75, src_task_id=None, dst_task_id=5),
    error=Error(code=2, reason="The model differs."),
)
proto = message_to_proto(instruction)
proto.metadata.message_id = instruction.object_id
proto.content.Clear()
pulled = fleet_pb2.PullMessagesResponse(messages_list=[proto], message_object_trees=[get_object_tree(instruction)])

json.dump(
    {
        "metadata": metadata_to_proto(metadata()).SerializeToString(deterministic=True).hex(),
        "register": request(fleet_pb2.RegisterNodeFleetRequest(public_key=b"key")),
        "activate": request(fleet_pb2.ActivateNodeRequest(public_key=b"key", heartbeat_interval=30)),
        "node": request(fleet_pb2.DeactivateNodeRequest(node_id=NODE)),
        "heartbeat": request(heartbeat_pb2.SendNodeHeartbeatRequest(node=Node(node_id=NODE), heartbeat_interval=30)),
        "pullMessages": request(fleet_pb2.PullMessagesRequest(node=Node(node_id=NODE))),
        "pullObject": request(message_pb2.PullObjectRequest(node=Node(node_id=NODE), run_id=RUN, object_id="ab")),
        "pushObject": request(
            message_pb2.PushObjectRequest(node=Node(node_id=NODE), run_id=RUN, object_id="ab", object_content=b"xyz", session_id="s")
        ),
        "pushMessages": request(
            fleet_pb2.PushMessagesRequest(
                node=Node(node_id=NODE), messages_list=[message_pb2.Message.FromString(bytes.fromhex(encoded(reply)["message"]))],
                message_object_trees=[get_object_tree(reply)], clientapp_runtime_list=[0.0],
            )
        ),
        "pushed": request(
            fleet_pb2.PushMessagesResponse(
                reconnect=fleet_pb2.Reconnect(reconnect=5), results={"ab": 0}, objects_to_push=["cd", "ef"], session_id="s"
            )
        ),
        "pulledObject": request(message_pb2.PullObjectResponse(object_found=True, object_available=True, object_content=b"xyz")),
        "pulledMessages": request(pulled),
        "instruction": encoded(instruction),
        "reply": encoded(reply),
        "error": encoded(error),
        "doubles": Array(weights.astype(np.float64)).data.hex(),
        "fortran": Array(np.asfortranarray(weights)).data.hex(),
        "integers": Array(np.arange(6)).data.hex(),
        "weights": Array(weights).data.hex(),
        "biases": Array(biases).data.hex(),
    },
    sys.stdout, indent=1,
)
print()
