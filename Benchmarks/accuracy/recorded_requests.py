"""Records and checks every byte that a device sends to a SuperLink."""

import io
import socket
import sys
import threading

import numpy as np
from flwr.proto import fleet_pb2, heartbeat_pb2, message_pb2, recorddict_pb2

REQUESTS = {
    "register-node": fleet_pb2.RegisterNodeFleetRequest,
    "activate-node": fleet_pb2.ActivateNodeRequest,
    "deactivate-node": fleet_pb2.DeactivateNodeRequest,
    "unregister-node": fleet_pb2.UnregisterNodeFleetRequest,
    "send-node-heartbeat": heartbeat_pb2.SendNodeHeartbeatRequest,
    "pull-messages": fleet_pb2.PullMessagesRequest,
    "push-messages": fleet_pb2.PushMessagesRequest,
    "pull-object": message_pb2.PullObjectRequest,
    "push-object": message_pb2.PushObjectRequest,
    "confirm-message-received": message_pb2.ConfirmMessageReceivedRequest,
}
HEADERS = {
    "host", "user-agent", "accept", "accept-encoding", "accept-language", "connection", "content-type", "content-length",
    "flwr-public-key", "flwr-signature", "flwr-timestamp",
}


class RecordingProxy:
    """Passes connections on to a port, and records what their clients send."""

    def __init__(self, target, passes=None):
        """`passes(name, count)` is called before the first bytes of a request are passed on; if it is false, they are not."""
        self.target, self.passes, self.counts = target, passes, {}
        self.recorded = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            data = bytearray()
            self.recorded.append(data)
            threading.Thread(target=self.connect, args=(client, data), daemon=True).start()

    def connect(self, client, data):
        try:
            with client, socket.create_connection(("127.0.0.1", self.target)) as server:
                threading.Thread(target=copy, args=(server, client), daemon=True).start()
                while chunk := client.recv(1 << 16):
                    data += chunk
                    if self.passes and chunk.startswith(b"POST "):
                        name = chunk.split(b" ", 2)[1].rsplit(b"/", 1)[-1].decode()
                        self.counts[name] = self.counts.get(name, 0) + 1
                        if not self.passes(name, self.counts[name]):
                            return
                    server.sendall(chunk)
        except OSError:
            pass  # A device was killed, or the server ended.

    def stop(self):
        self.listener.close()


def copy(source, target):
    try:
        while chunk := source.recv(1 << 16):
            target.sendall(chunk)
    except OSError:
        pass


def check_requests(recorded, photos, model):
    """Checks the bytes of all connections, and returns the numbers of requests and bytes; exits if a byte is not explained.

    `photos` are files that must not appear in the bytes; `model` is the output of imprint inspect --json.
    """
    head = next(node for node in reversed(model["nodes"]) if node["kind"] == "dense")
    labels = len(model["labels"])
    shapes = {(head["parameterCount"] // labels - 1, labels), (labels,)}
    count, byte_count = 0, 0
    for data in map(bytes, recorded):
        byte_count += len(data)
        for photo in photos:
            content = photo.read_bytes()
            parts = [content[start : start + 24] for start in range(0, len(content) - 24, 24)]
            if photo.name.encode() in data or any(part in data for part in parts):
                sys.exit(f"A device sent a part of {photo} or its name.")
        while data:
            name, body, data = next_request(data)
            if body is None:
                break  # The connection of a device that was killed.
            count += 1
            check_body(name, body, shapes)
    return count, byte_count


def next_request(data):
    head, separator, rest = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    method, path, version = lines[0].split(" ")
    headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines[1:]}
    if (method, version) != ("POST", "HTTP/1.1") or not path.startswith("/v1/fleet/") or not separator:
        sys.exit(f"A device sent {lines[0]!r}, expected a request of the Fleet API.")
    if unknown := headers.keys() - HEADERS:
        sys.exit(f"A device sent the header {sorted(unknown)[0]}.")
    length = int(headers["content-length"])
    return path.removeprefix("/v1/fleet/"), rest[:length] if len(rest) >= length else None, rest[length:]


def check_body(name, body, shapes):
    request = REQUESTS[name].FromString(body)
    # Unknown fields and other encodings would make a difference.
    without_unknown = REQUESTS[name].FromString(body)
    without_unknown.DiscardUnknownFields()
    if without_unknown.SerializeToString(deterministic=True) != body:
        sys.exit(f"A request {name} has bytes that are not part of its message.")
    if name == "push-messages":
        for message in request.messages_list:
            if message.content.ByteSize():
                sys.exit("A message has content outside its objects.")
    if name == "push-object":
        check_object(request.object_content, shapes)


def check_object(content, shapes):
    header, _, body = content.partition(b"\0")
    kind, children, length = header.decode().split(" ")
    if int(length) != len(body):
        sys.exit(f"An object {kind} has {len(body)} bytes, expected {length}.")
    if kind == "ArrayChunk":
        file = io.BytesIO(body)
        shape = np.load(file, allow_pickle=False).shape
        if shape not in shapes or file.read():
            sys.exit(f"A device sent an array of the shape {shape}, expected one of {sorted(shapes)}.")
    elif kind == "MetricRecord":
        names = {item.key for item in recorddict_pb2.MetricRecord.FromString(body).items}
        if not names <= {"num-examples", "accuracy", "loss"}:
            sys.exit(f"A device sent the metrics {sorted(names)}.")
    elif kind not in ("Array", "ArrayRecord", "RecordDict", "Message"):
        sys.exit(f"A device sent an object {kind}.")
    elif kind in ("Array", "ArrayRecord", "RecordDict") and len(body) > 400:
        sys.exit(f"An object {kind} has {len(body)} bytes, more than names and IDs need.")
