internal import Foundation
internal import Imprint

/// Makes the response to an inference request.
struct InferenceResponse {
    private let request: InferenceRequest
    private let predictions: [Prediction]
    private let interface: ModelInterface
    /// The objects of each image.
    private let objects: [[DetectedObject]]

    /// - Parameter reachesThreshold: Whether an object counts, given the minimum confidence of the request.
    init(
        _ request: InferenceRequest, _ predictions: [Prediction], _ interface: ModelInterface,
        reachesThreshold: (DetectedObject, Float?) -> Bool
    ) {
        (self.request, self.predictions, self.interface) = (request, predictions, interface)
        objects = predictions.map { prediction in
            prediction.objects.filter { reachesThreshold($0, request.minimumConfidence) }
        }
    }

    private struct Message: Encodable {
        let modelName: String
        let modelVersion = "1"
        let id: String?
        let outputs: [Output]

        private enum CodingKeys: String, CodingKey {
            case modelName = "model_name"
            case modelVersion = "model_version"
            case id, outputs
        }
    }

    private struct Output: Encodable {
        struct Parameters: Encodable {
            let binaryDataByteCount: Int

            private enum CodingKeys: String, CodingKey { case binaryDataByteCount = "binary_data_size" }
        }

        let name: String
        let datatype: Datatype
        let shape: [Int]
        let parameters: Parameters?
        let data: Elements?
    }

    /// The elements of a tensor in row-major order.
    enum Elements: Encodable {
        case floats([Float])
        case integers([Int32])
        case strings([String])

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .floats(let values): try container.encode(values)
            case .integers(let values): try container.encode(values)
            case .strings(let values): try container.encode(values)
            }
        }

        /// The elements in the binary format of the protocol.
        var bytes: Data {
            switch self {
            case .floats(let values): values.map(\.bitPattern.littleEndian).withUnsafeBytes { Data($0) }
            case .integers(let values): values.map(\.littleEndian).withUnsafeBytes { Data($0) }
            case .strings(let texts):
                texts.reduce(into: Data()) { data, text in
                    withUnsafeBytes(of: UInt32(text.utf8.count).littleEndian) { data.append(contentsOf: $0) }
                    data.append(contentsOf: text.utf8)
                }
            }
        }
    }

    /// Returns the HTTP response.
    func response() throws -> Response {
        var binary = Data()
        let outputs = request.outputs.map { requested in
            let (shape, elements) = tensor(requested)
            let bytes = requested.isBinary ? elements.bytes : nil
            binary += bytes ?? Data()
            return Output(
                name: requested.output.rawValue,
                datatype: requested.classification == nil ? requested.output.datatype : .bytes, shape: shape,
                parameters: bytes.map { Output.Parameters(binaryDataByteCount: $0.count) },
                data: bytes == nil ? elements : nil)
        }
        var response = try Response(json: Message(modelName: interface.name, id: request.id, outputs: outputs))
        if request.outputs.contains(where: \.isBinary) {
            response.fields[InferenceRequest.jsonLengthField] = "\(response.body.count)"
            response.fields["Content-Type"] = "application/octet-stream"
            response.body += binary
        }
        response.imageCount = predictions.count
        return response
    }

    /// Returns the shape and the elements of an output.
    private func tensor(_ requested: InferenceRequest.Output) -> (shape: [Int], elements: Elements) {
        let count = predictions.count
        let objectCount = objects.map(\.count).max() ?? 0
        /// Returns a value for each object, and padding up to the largest number of objects.
        func padded<Value>(_ padding: Value, _ value: (DetectedObject) -> Value) -> [Value] {
            objects.flatMap { objects in
                objects.map(value) + Array(repeating: padding, count: objectCount - objects.count)
            }
        }
        switch requested.output {
        case .confidences:
            guard let labels = requested.classification else {
                return ([count, interface.labels.count], .floats(predictions.flatMap(\.confidences)))
            }
            return ([count, labels], .strings(predictions.flatMap { classified($0, labels) }))
        case .labels:
            return ([count], .strings(predictions.map { interface.labels[ranked($0)[0]] }))
        case .counts: return ([count], .integers(objects.map { Int32($0.count) }))
        case .boxes:
            let boxes = padded([0, 0, 0, 0]) { [$0.box.x, $0.box.y, $0.box.width, $0.box.height] }
            return ([count, objectCount, 4], .floats(boxes.flatMap(\.self)))
        case .boxConfidences: return ([count, objectCount], .floats(padded(0, \.confidence)))
        case .boxLabels: return ([count, objectCount], .strings(padded("", \.label)))
        }
    }

    /// Returns the indices of the labels by descending confidence; equal confidences keep the order of the labels.
    private func ranked(_ prediction: Prediction) -> [Int] {
        let confidences = prediction.confidences
        return confidences.indices.sorted { (confidences[$1], $0) < (confidences[$0], $1) }
    }

    /// Returns the best labels as the classification extension writes them: confidence, index and label.
    private func classified(_ prediction: Prediction, _ count: Int) -> [String] {
        ranked(prediction).prefix(count).map { "\(prediction.confidences[$0]):\($0):\(interface.labels[$0])" }
    }
}
