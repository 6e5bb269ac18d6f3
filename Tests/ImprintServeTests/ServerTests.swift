import Foundation
import Imprint
import ImprintImages
import Testing

@testable import ImprintServe

/// Starts a server of the brightness model, calls `body`, and stops the server.
func withServer<Value>(
    _ change: (inout ServeOptions) -> Void = { _ in }, model: ImageClassifier? = nil,
    _ body: (InferenceServer, Int) throws -> Value
) throws -> Value {
    var options = ServeOptions(modelName: "light", version: "1.2.3")
    options.port = 0
    change(&options)
    let server = try InferenceServer(try model ?? ImageClassifier(brightnessModel()), options: options)
    defer { server.stop(within: .seconds(5)) }
    return try body(server, try #require(URL(string: server.url)?.port))
}

@Suite("Model server") struct ServerTests {
    private func host(_ port: Int) -> [String: String] { ["Host": "127.0.0.1:\(port)"] }

    @Test("Health, metadata and metrics have the content of the protocol") func metadata() throws {
        try withServer { _, port in
            let client = try TestClient(port: port)
            func json(_ path: String) throws -> [String: Any] {
                let answer = try client.request("GET", path, host(port))
                #expect(answer.status == 200)
                return try answer.json
            }
            #expect(try json("/v2/health/live")["live"] as? Bool == true)
            #expect(try json("/v2/health/ready")["ready"] as? Bool == true)
            #expect(try json("/v2/models/light/versions/1/ready")["ready"] as? Bool == true)
            #expect(try json("/v2")["version"] as? String == "1.2.3")
            #expect(try json("/v2/models")["models"] as? [String] == ["light"])
            let model = try json("/v2/models/light")
            #expect(model["name"] as? String == "light" && model["versions"] as? [String] == ["1"])
            let inputs = try #require(model["inputs"] as? [[String: Any]])
            #expect(inputs.map { $0["name"] as? String } == ["image", "pixels", "values"])
            #expect(inputs.map { $0["datatype"] as? String } == ["BYTES", "UINT8", "FP32"])
            #expect(inputs[2]["shape"] as? [Int] == [-1, 8, 8, 3])
            #expect((model["parameters"] as? [String: Any])?["labels"] as? [String] == ["bright", "dark"])
            let head = try client.request("HEAD", "/v2/health/live", host(port))
            #expect(head.status == 200 && head.fields["content-length"] == "13")
            let metrics = try client.request("GET", "/metrics", host(port))
            let text = String(decoding: metrics.body, as: UTF8.self)
            #expect(metrics.fields["content-type"]?.hasPrefix("text/plain; version=0.0.4") == true)
            #expect(text.contains("imprint_requests_total{route=\"health\",status=\"200\"} 4\n"))
            #expect(text.contains("imprint_connections 1\n") && text.contains("\nimprint_queue_length 0\n"))
        }
    }

    @Test("The response to a HEAD request has no body, also if the request is rejected") func rejectedHead() throws {
        try withServer { _, port in
            let client = try TestClient(port: port)
            let answer = try client.request("HEAD", "/elsewhere", host(port))
            #expect(answer.status == 404 && answer.fields["content-length"] != "0")
            #expect(client.isClosedByServer && client.unusedByteCount == 0)
        }
    }

    @Test("All kinds of inputs give the confidences of the classifier") func inference() throws {
        let classifier = try ImageClassifier(brightnessModel())
        let image = RasterImage(width: 8, height: 8, filledWith: 200)
        let expected = try classifier.classify(image)[0]
        #expect(expected.label == "bright")
        let photo = try greyPhoto(200)
        let values = [Float](repeating: (200 - 127.5) / 127.5, count: 192)
        try withServer { _, port in
            let client = try TestClient(port: port)
            func infer(
                _ input: String, _ fields: [String: String] = [:], binary: Data = Data()
            ) throws -> TestClient.Answer {
                let json = Data(#"{"inputs": [\#(input)]}"#.utf8)
                var fields = fields.merging(host(port)) { $1 }
                if !binary.isEmpty { fields["Inference-Header-Content-Length"] = "\(json.count)" }
                return try client.request("POST", "/v2/models/light/infer", fields, body: json + binary)
            }
            let elements = bytesElements([photo])
            let answers = [
                try client.request(
                    "POST", "/v2/models/light/infer", host(port).merging(["Content-Type": "image/png"]) { $1 },
                    body: photo),
                try infer(
                    #"{"name": "image", "shape": [1], "datatype": "BYTES", "data": ["\#(photo.base64EncodedString())"]}"#
                ),
                try infer(
                    #"{"name": "image", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": \#(elements.count)}}"#,
                    binary: elements),
                try infer(
                    #"{"name": "pixels", "shape": [1, 8, 8, 3], "datatype": "UINT8", "data": \#(image.samples)}"#),
                try infer(
                    #"{"name": "values", "shape": [1, 8, 8, 3], "datatype": "FP32", "parameters": {"binary_data_size": 768}}"#,
                    binary: values.withUnsafeBytes { Data($0) }),
            ]
            for answer in answers {
                #expect(answer.status == 200)
                let outputs = try #require(try answer.json["outputs"] as? [[String: Any]])
                #expect(outputs.map { $0["name"] as? String } == ["confidences", "labels"])
                #expect(outputs[0]["shape"] as? [Int] == [1, 2])
                let confidences = try #require(outputs[0]["data"] as? [Double])
                #expect(abs(Float(confidences[0]) - expected.confidence) < 1e-5)
                #expect(outputs[1]["data"] as? [String] == ["bright"])
            }
            let text = String(decoding: try client.request("GET", "/metrics", host(port)).body, as: UTF8.self)
            #expect(text.contains("imprint_images_total 5\n") && text.contains("imprint_batch_size_count 5\n"))
        }
    }

    @Test("Binary outputs follow the JSON") func binaryOutputs() throws {
        try withServer { _, port in
            let json = #"""
                {"id": "a", "parameters": {"binary_data_output": true}, "inputs": [{"name": "pixels", "datatype": "UINT8",
                "shape": [2, 1, 1, 3], "data": [255, 255, 255, 0, 0, 0]}], "outputs": [{"name": "labels"},
                {"name": "confidences"}, {"name": "confidences", "parameters": {"classification": 1, "binary_data": false}}]}
                """#
            let client = try TestClient(port: port)
            // The last output repeats a name; a model has at most two outputs.
            let tooMany = try client.request("POST", "/v2/models/light/infer", host(port), body: Data(json.utf8))
            #expect(tooMany.error == "The request has 3 outputs, expected at most 2.")
            let two = json.replacing(#""outputs": [{"name": "labels"},"#, with: #""outputs": ["#)
            let answer = try client.request("POST", "/v2/models/light/infer", host(port), body: Data(two.utf8))
            #expect(answer.status == 200 && answer.fields["content-type"] == "application/octet-stream")
            let length = try #require(answer.fields["inference-header-content-length"].flatMap { Int($0) })
            let message = try #require(
                try JSONSerialization.jsonObject(with: answer.body.prefix(length)) as? [String: Any])
            #expect(message["id"] as? String == "a" && message["model_version"] as? String == "1")
            #expect(answer.body.count == length + 4 * 4)
            let outputs = try #require(message["outputs"] as? [[String: Any]])
            let classes = try #require(outputs[1]["data"] as? [String])
            #expect(outputs[1]["shape"] as? [Int] == [2, 1])
            #expect(classes[0].hasSuffix(":0:bright") && classes[1].hasSuffix(":1:dark"))
        }
    }

    @Test("Detectors return boxes, padded to the largest number of objects in the batch") func detector() throws {
        let model = try randomDetector()
        let photo = try greyPhoto(90, width: 150, height: 120)
        let expected = try DetectionRequest(ImageClassifier(model)).detector.detect(
            RasterImage(width: 150, height: 120, filledWith: 90), minimumConfidence: 0.01)
        try withServer(model: ImageClassifier(model, threads: 2)) { _, port in
            let client = try TestClient(port: port)
            let text = photo.base64EncodedString()
            let json = #"""
                {"parameters": {"minimum_confidence": 0.01}, "inputs": [{"name": "image", "datatype": "BYTES", "shape": [2],
                "data": ["\#(text)", "\#(text)"]}]}
                """#
            let answer = try client.request("POST", "/v2/models/light/infer", host(port), body: Data(json.utf8))
            #expect(answer.status == 200)
            let outputs = try #require(try answer.json["outputs"] as? [[String: Any]])
            #expect(
                outputs.map { $0["name"] as? String } == [
                    "confidences", "labels", "counts", "boxes", "box_confidences", "box_labels",
                ])
            #expect(!expected.isEmpty && outputs[2]["data"] as? [Int] == [expected.count, expected.count])
            #expect(outputs[3]["shape"] as? [Int] == [2, expected.count, 4])
            #expect((outputs[3]["data"] as? [Double])?.count == 8 * expected.count)
            #expect(outputs[5]["data"] as? [String] == Array(repeating: "logo", count: 2 * expected.count))
            // A detector needs images.
            let values = #"{"inputs": [{"name": "values", "datatype": "FP32", "shape": [1], "data": [1]}]}"#
            let other = try client.request("POST", "/v2/models/light/infer", host(port), body: Data(values.utf8))
            #expect(other.status == 400 && other.error?.contains("expected exactly one of image, pixels.") == true)
            let none = json.replacing("0.01", with: "1")
            let empty = try client.request("POST", "/v2/models/light/infer", host(port), body: Data(none.utf8))
            let emptyOutputs = try #require(try empty.json["outputs"] as? [[String: Any]])
            #expect(emptyOutputs[3]["shape"] as? [Int] == [2, 0, 4])
        }
    }

    @Test("An unreadable picture is an error that names it") func unreadable() throws {
        let photo = try greyPhoto(1).base64EncodedString()
        try withServer { _, port in
            let client = try TestClient(port: port)
            let json =
                #"{"inputs": [{"name": "image", "datatype": "BYTES", "shape": [2], "data": ["\#(photo)", "AAAA"]}]}"#
            let answer = try client.request("POST", "/v2/models/light/infer", host(port), body: Data(json.utf8))
            #expect(answer.status == 422)
            #expect(answer.error?.hasPrefix("Image 2 of 2: the image data: expected an image") == true)
            let empty = try client.request(
                "POST", "/v2/models/light/infer", host(port).merging(["Content-Type": "image/jpeg"]) { $1 },
                body: Data())
            #expect(empty.status == 400)
        }
    }

    @Test(
        "A picture that is sent with another media type is an error that names the header field",
        arguments: [["Content-Type": "application/x-www-form-urlencoded"], [:]])
    func mediaType(fields: [String: String]) throws {
        let photo = try greyPhoto(1)
        try withServer { _, port in
            let answer = try TestClient(port: port).request(
                "POST", "/v2/models/light/infer", host(port).merging(fields) { $1 }, body: photo)
            #expect(answer.status == 415)
            #expect(answer.error?.contains("Send the header field Content-Type: image/") == true)
        }
    }

    @Test("Compressed bodies and values that are not finite are errors") func unsupported() throws {
        try withServer { _, port in
            let client = try TestClient(port: port)
            let fields = host(port).merging(["Content-Encoding": "gzip"]) { $1 }
            #expect(try client.request("POST", "/v2/models/light/infer", fields, body: Data("x".utf8)).status == 415)
            let json = Data(
                #"{"inputs": [{"name": "values", "shape": [1, 8, 8, 3], "datatype": "FP32", "parameters": {"binary_data_size": 768}}]}"#
                    .utf8)
            let values = [Float](repeating: .nan, count: 192).withUnsafeBytes { Data($0) }
            let answer = try client.request(
                "POST", "/v2/models/light/infer",
                host(port).merging(["Inference-Header-Content-Length": "\(json.count)"]) { $1 }, body: json + values)
            #expect(answer.status == 422 && answer.error?.contains("not finite") == true)
        }
    }
}
