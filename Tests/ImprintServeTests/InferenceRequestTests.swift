import Foundation
import Imprint
import ImprintImages
import Testing

@testable import ImprintServe

@Suite("Inference requests") struct InferenceRequestTests {
    private func request(_ json: String, binary: Data = Data(), jsonByteCount: Int? = nil) throws -> InferenceRequest {
        try InferenceRequest(
            Data(json.utf8) + binary, jsonByteCount: jsonByteCount ?? (binary.isEmpty ? nil : json.utf8.count),
            ModelInterface(ImageClassifier(brightnessModel()), name: "m"), maximumImageCount: 256)
    }

    @Test("Requests with too many images are rejected before the images are read", arguments: ["pixels", "image"])
    func tooMany(kind: String) throws {
        let (datatype, shape) = kind == "pixels" ? ("UINT8", "[1048576, 1, 1, 1]") : ("BYTES", "[1048576]")
        let json = input(kind, datatype, shape, #""parameters": {"binary_data_size": 1048576}"#)
        let error = #expect(throws: HTTPError.self) { try request(json, binary: Data(count: 1 << 20)) }
        #expect(error?.message == "the request has 1048576 images, expected at most 256. Send several requests")
    }

    private func input(_ name: String, _ datatype: String, _ shape: String, _ rest: String) -> String {
        #"{"inputs": [{"name": "\#(name)", "datatype": "\#(datatype)", "shape": \#(shape), \#(rest)}]}"#
    }

    /// The JSON of an image of 192 pixels, row by row.
    private func numbers(_ count: Int = 192) -> String {
        "[\((0..<count).map { "\($0 % 256)" }.joined(separator: ","))]"
    }

    @Test("Flat and nested arrays are the same tensor") func arrays() throws {
        let row = "[\(Array(repeating: "[1, 2, 3]", count: 2).joined(separator: ","))]"
        let nested = "[[\(row), \(row)]]"
        for data in [nested, "[1,2,3,1,2,3,1,2,3,1,2,3]"] {
            let request = try request(input("pixels", "UINT8", "[1, 2, 2, 3]", #""data": \#(data)"#))
            guard case .image(.image(let image)) = request.images[0] else {
                Issue.record("no image")
                continue
            }
            #expect(request.images.count == 1)
            #expect(
                image == RasterImage(width: 2, height: 2, channels: 3, samples: [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]))
        }
    }

    @Test("Binary pixels of grey images, and binary values, are split into the images of the batch") func binary()
        throws
    {
        let grey = try request(
            input("pixels", "UINT8", "[2, 1, 3, 1]", #""parameters": {"binary_data_size": 6}"#), binary: Data(0..<6))
        let images = grey.images.compactMap { input -> [UInt8]? in
            if case .image(.image(let image)) = input { image.samples } else { nil }
        }
        #expect(images == [[0, 1, 2], [3, 4, 5]])
        let floats = (0..<384).map { Float($0) }
        let values = try request(
            input("values", "FP32", "[2, 8, 8, 3]", #""parameters": {"binary_data_size": 1536}"#),
            binary: floats.withUnsafeBytes { Data($0) })
        let second = values.images.last.flatMap { input -> [Float]? in
            guard case .values(let bytes) = input else { return nil }
            return [Float](unsafeUninitializedCapacity: 192) { buffer, count in
                count = bytes.copyBytes(to: UnsafeMutableRawBufferPointer(buffer)) / 4
            }
        }
        #expect(values.images.count == 2 && second == Array(floats[192...]))
    }

    @Test("Pictures come as Base64 in JSON, or after their lengths", arguments: ["[2]", "[2, 1]"])
    func pictures(shape: String) throws {
        let pictures = [Data("first".utf8), Data()]
        let text = try request(
            input("image", "BYTES", shape, #""data": ["\#(pictures[0].base64EncodedString())", ""]"#))
        let elements = bytesElements(pictures)
        let binary = try request(
            input("image", "BYTES", shape, #""parameters": {"binary_data_size": \#(elements.count)}"#), binary: elements
        )
        for request in [text, binary] {
            let found = request.images.compactMap { input -> Data? in
                if case .image(.data(let data, nil)) = input { data } else { nil }
            }
            #expect(found == pictures)
        }
    }

    @Test("Outputs are JSON unless the request or the output says binary, and classification has a count")
    func outputs() throws {
        let data = #""shape": [1], "datatype": "BYTES", "name": "image", "data": ["AA=="]"#
        let all = try request(#"{"inputs": [{\#(data)}], "parameters": {"binary_data_output": true}, "id": "7"}"#)
        #expect(all.id == "7" && all.outputs.map(\.output) == [.confidences, .labels])
        #expect(all.outputs.map(\.isBinary) == [true, true])
        let some = try request(
            #"""
            {"inputs": [{\#(data)}], "outputs": [{"name": "labels"}, {"name": "confidences", "parameters":
            {"classification": 2, "binary_data": true}}]}
            """#)
        #expect(some.outputs.map(\.isBinary) == [false, true] && some.outputs.map(\.classification) == [nil, 2])
    }

    /// Invalid requests with a part of the message.
    static let invalid: [(json: String, message: String)] = [
        ("", "not a JSON text"), ("[]", "another type"), ("null", "null"), ("{", "not a JSON text"),
        ("{}", "inputs is missing"),
        (#"{"inputs": []}"#, "the inputs none, expected exactly one of image, pixels, values"),
        (#"{"inputs": {}}"#, "inputs has another type, expected an array"),
        (#"{"inputs": [{"name": "image", "shape": [1]}]}"#, "inputs[0].datatype is missing"),
        (#"{"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES"}]}"#, #"the inputs "x""#),
        (#"{"inputs": [{"name": "image", "shape": "1", "datatype": "BYTES"}]}"#, "inputs[0].shape has another type"),
        (#"{"inputs": [{"name": "image", "shape": [1.5], "datatype": "BYTES"}]}"#, "or a number is not in its range"),
        (#"{"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES"}]}"#, "has no data"),
        (#"{"inputs": [{"name": "image", "shape": [1], "datatype": "FP32"}]}"#, #"is "FP32", expected BYTES"#),
        (
            #"{"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": ["*"]}]}"#,
            "element 0 of image is not Base64"
        ),
        (
            #"{"inputs": [{"name": "image", "shape": [2], "datatype": "BYTES", "data": ["AA=="]}]}"#,
            "has 1 element, expected 2"
        ),
        (
            #"{"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [1]}]}"#,
            "expected pictures in Base64"
        ),
        (
            #"{"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [1, "a"]}]}"#,
            "both numbers and strings"
        ),
        (
            #"{"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [0, [], 0, []]}]}"#,
            "both numbers and arrays at the same depth"
        ),
        (
            #"{"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [["A"], [["A"]]]}]}"#,
            "both strings and arrays at the same depth"
        ),
        (
            #"{"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [["A"], [1]]}]}"#,
            "both numbers and strings at the same depth"
        ),
        (
            #"{"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [["A"], null]}]}"#,
            "neither a number"
        ),
        (#"{"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [null]}]}"#, "neither a number"),
        (
            #"{"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [[[[[[[[["A"]]]]]]]]]}]}"#,
            "nested too deeply"
        ),
        (
            #"{"inputs": [{"name": "pixels", "shape": [1, 1, 1, 3], "datatype": "UINT8", "data": [1, 2, 256]}]}"#,
            "the number 256"
        ),
        (
            #"{"inputs": [{"name": "pixels", "shape": [1, 1, 1, 3], "datatype": "UINT8", "data": [1, 2, 0.5]}]}"#,
            "the number 0.5"
        ),
        (
            #"{"inputs": [{"name": "pixels", "shape": [1, 1, 1, 3], "datatype": "UINT8", "data": [1, 2]}]}"#,
            "has 2 elements"
        ),
        (
            #"{"inputs": [{"name": "values", "shape": [1, 8, 8, 3], "datatype": "FP32", "data": [1e999]}]}"#,
            "neither a number in range"
        ),
        (
            #"{"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": ["AA=="]}], "outputs": [{"name": "x"}]}"#,
            #"no output "x", expected confidences, labels"#
        ),
        (
            #"""
            {"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": ["AA=="]}], "outputs": [{"name": "confidences",
            "parameters": {"classification": 3}}]}
            """#, "classification is 3 for confidences, expected 1 to 2"
        ),
        (
            #"""
            {"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": ["AA=="]}],
            "parameters": {"minimum_confidence": 2}}
            """#, "minimum_confidence is 2, expected 0 to 1"
        ),
    ]

    @Test("Invalid requests are errors that name the problem", arguments: invalid)
    func invalidRequests(json: String, message: String) {
        #expect { try request(json) } throws: { error in
            let error = error as? HTTPError
            return error?.status == .badRequest && error?.message.contains(message) == true
        }
    }

    @Test(
        "Shapes that do not fit are errors",
        arguments: [
            "[]", "[0]", "[-1]", "[1, 2]", "[9223372036854775807]", "[4611686018427387904, 4]", "[1099511627777]",
            "[9223372036854775808]",
        ])
    func shapes(shape: String) {
        #expect(throws: HTTPError.self) { try request(input("image", "BYTES", shape, #""data": ["AA=="]"#)) }
    }

    @Test(
        "Shapes of pixels and values that do not fit are errors",
        arguments: [
            ("pixels", "UINT8", "[8, 8, 3]"), ("pixels", "UINT8", "[1, 8, 8, 2]"), ("pixels", "UINT8", "[1, 8, 8, 5]"),
            ("pixels", "UINT8", "[1, 0, 8, 3]"), ("pixels", "UINT8", "[1, -8, -8, 3]"),
            ("pixels", "UINT8", "[2, 8, 8, 3]"), ("pixels", "UINT8", "[4294967296, 4294967296, 1, 3]"),
            ("values", "FP32", "[1, 3, 8, 8]"), ("values", "FP32", "[1, 8, 9, 3]"), ("values", "FP32", "[192]"),
            ("values", "FP32", "[2, 8, 8, 3]"),
        ])
    func tensorShapes(name: String, datatype: String, shape: String) {
        #expect(throws: HTTPError.self) {
            try request(input(name, datatype, shape, #""data": \#(numbers())"#))
        }
    }

    @Test(
        "Binary data of the wrong size is an error",
        arguments: [
            (6, Data(0..<5)), (5, Data(0..<6)), (-1, Data(0..<6)), (Int.max, Data(0..<6)), (7, Data(0..<7)),
            (0, Data()),
        ])
    func binarySizes(size: Int, binary: Data) {
        let json = input("pixels", "UINT8", "[1, 1, 2, 3]", #""parameters": {"binary_data_size": \#(size)}"#)
        #expect(throws: HTTPError.self) {
            try request(json, binary: binary, jsonByteCount: json.utf8.count)
        }
    }

    @Test(
        "Pictures with wrong lengths are errors",
        arguments: [
            [1, 0, 0], [5, 0, 0, 0, 1], [255, 255, 255, 255, 1], [0, 0, 0, 0], [1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0],
            [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        ] as [[UInt8]])
    func pictureLengths(bytes: [UInt8]) {
        let json = input("image", "BYTES", "[2]", #""parameters": {"binary_data_size": \#(bytes.count)}"#)
        #expect(throws: HTTPError.self) { try request(json, binary: Data(bytes)) }
    }

    @Test(
        "The error about a picture states whether its length or its content is truncated",
        arguments: [
            ([1, 0], "the length of element 0 of image is truncated: found 2 bytes, expected 4"),
            ([1, 0, 0, 0, 9, 7], "the length of element 1 of image is truncated: found 1 byte, expected 4"),
            ([5, 0, 0, 0, 1], "element 0 of image has 1 byte, expected 5"),
        ] as [([UInt8], String)])
    func truncatedPicture(bytes: [UInt8], message: String) {
        let json = input("image", "BYTES", "[2]", #""parameters": {"binary_data_size": \#(bytes.count)}"#)
        let error = #expect(throws: HTTPError.self) { try request(json, binary: Data(bytes)) }
        #expect(error?.message == message)
    }

    @Test("A length of the JSON beyond the body is an error", arguments: [-1, 1000, Int.max])
    func jsonLengths(length: Int) {
        #expect(throws: HTTPError.self) { try request("{}", jsonByteCount: length) }
    }

    @Test("Deeply nested JSON is an error", arguments: [1000, 100_000]) func nesting(depth: Int) {
        for open in ["[", #"{"inputs":"#, #"{"inputs":[{"data":["#] {
            #expect(throws: HTTPError.self) { try request(String(repeating: open, count: depth)) }
        }
    }
}
