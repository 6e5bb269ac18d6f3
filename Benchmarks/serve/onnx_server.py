"""The simplest Python server of an ONNX model: ONNX Runtime behind http.server, with a thread per connection.

Usage: onnx_server.py MODEL PORT THREADS

It reads the binary tensors that measure.py sends to `imprint serve`, and responds with the confidences as JSON.
"""

import http.server
import json
import sys

import numpy
import onnxruntime

model, port, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
tensor = session.get_inputs()[0]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        start = int(self.headers["Inference-Header-Content-Length"])
        shape = json.loads(body[:start])["inputs"][0]["shape"]
        values = numpy.frombuffer(body, numpy.float32, offset=start).reshape(shape)
        if tensor.shape[1] == shape[3]:  # [batch, channels, height, width]
            values = numpy.ascontiguousarray(values.transpose(0, 3, 1, 2))
        confidences = session.run(None, {tensor.name: values})[0]
        response = json.dumps({"outputs": [{"name": "confidences", "data": confidences.reshape(-1).tolist()}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(response)))
        self.end_headers()
        self.wfile.write(response)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass  # The load generator ends its connections in the middle of requests.


Server(("127.0.0.1", port), Handler).serve_forever()
