internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages

/// An inference request: its images, and the requested outputs.
struct InferenceRequest {
    /// A requested output.
    struct Output {
        let output: ModelInterface.Output
        var isBinary = false
        /// The number of labels, for the classification extension; nil for the tensor itself.
        var classification: Int?
    }

    var id: String?
    let images: [BatchInput]
    let outputs: [Output]
    /// The minimum confidence of an object; nil for the thresholds of the model.
    var minimumConfidence: Float?

    /// Creates the request of one encoded picture.
    init(picture: Data, _ interface: ModelInterface) {
        images = [.image(.data(picture))]
        outputs = interface.outputs.map { Output(output: $0) }
    }

    /// Decodes a request in the protocol.
    /// - Parameters:
    ///   - body: A JSON text, followed by the binary data of the inputs.
    ///   - jsonByteCount: The number of bytes in the JSON text; nil if there is no binary data.
    ///   - maximumImageCount: The maximum number of images.
    init(
        _ body: Data, jsonByteCount: Int?, _ interface: ModelInterface, maximumImageCount: Int
    ) throws(HTTPError) {
        let jsonByteCount = jsonByteCount ?? body.count
        guard (0...body.count).contains(jsonByteCount) else {
            throw HTTPError(
                .badRequest,
                "\(Self.jsonLengthField) is \(jsonByteCount), expected at most the \(counted(body.count, "byte")) of the body"
            )
        }
        let message = try InferenceMessage.decode(body.prefix(jsonByteCount))
        guard message.inputs.count == 1, let input = message.inputs.first,
            let kind = ModelInterface.Input(rawValue: input.name), interface.inputs.contains(kind)
        else {
            let names = message.inputs.prefix(5).map { String($0.name.prefix(60)).debugDescription }
            throw HTTPError(
                .badRequest,
                "the request has the inputs \(names.isEmpty ? "none" : names.joined(separator: ", ")), expected exactly one of "
                    + interface.inputs.map(\.rawValue).joined(separator: ", "))
        }
        images = try TensorReader(input, kind, interface, maximumImageCount: maximumImageCount).images(
            binary: body.dropFirst(jsonByteCount))
        id = message.id
        outputs = try Self.outputs(message, interface)
        if let confidence = message.parameters?.minimumConfidence {
            guard (0...1).contains(confidence) else {
                throw HTTPError(.badRequest, "minimum_confidence is \(messageText(confidence)), expected 0 to 1")
            }
            minimumConfidence = Float(confidence)
        }
    }

    /// The header field with the number of bytes in the JSON text.
    static let jsonLengthField = "Inference-Header-Content-Length"

    /// Returns the number of bytes in the JSON text of a request; nil if its body has no binary data.
    static func jsonByteCount(_ head: RequestHead) throws(HTTPError) -> Int? {
        guard let text = head.fields[jsonLengthField.lowercased()] else { return nil }
        guard let count = Int(text), count >= 0 else {
            throw HTTPError(
                .badRequest,
                "\(jsonLengthField) is \(String(text.prefix(20)).debugDescription), expected a number of bytes")
        }
        return count
    }

    private static func outputs(
        _ message: InferenceMessage, _ interface: ModelInterface
    ) throws(HTTPError) -> [Output] {
        let isBinary = message.parameters?.hasBinaryOutputs ?? false
        guard let requested = message.outputs, !requested.isEmpty else {
            return interface.outputs.map { Output(output: $0, isBinary: isBinary) }
        }
        guard requested.count <= interface.outputs.count else {
            throw HTTPError(
                .badRequest, "the request has \(requested.count) outputs, expected at most \(interface.outputs.count)")
        }
        var outputs: [Output] = []
        for request in requested {
            guard let output = ModelInterface.Output(rawValue: request.name), interface.outputs.contains(output) else {
                throw HTTPError(
                    .badRequest,
                    "the model has no output \(String(request.name.prefix(60)).debugDescription), expected "
                        + interface.outputs.map(\.rawValue).joined(separator: ", "))
            }
            let count = request.parameters?.classification ?? 0
            guard count == 0 || output == .confidences && (1...interface.labels.count).contains(count) else {
                throw HTTPError(
                    .badRequest,
                    "classification is \(count) for \(output.rawValue), expected 1 to \(interface.labels.count) for confidences"
                )
            }
            outputs.append(
                Output(
                    output: output, isBinary: request.parameters?.isBinary ?? isBinary,
                    classification: count == 0 ? nil : count))
        }
        return outputs
    }
}
