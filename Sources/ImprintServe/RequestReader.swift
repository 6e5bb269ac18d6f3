package import Foundation
internal import Imprint
package import ImprintModel

/// Reads the bytes of requests like a connection, but without a socket; for fuzzing.
package struct RequestReader: Sendable {
    private let interface: ModelInterface

    /// Creates a reader of requests to a model.
    /// - Throws: The errors of `ImageClassifier`.
    package init(_ model: ModelFile, name: String) throws {
        interface = ModelInterface(try ImageClassifier(model), name: name)
    }

    /// Reads a head, an empty line and a body.
    /// - Throws: `HTTPError` if the request is invalid.
    package func read(_ bytes: Data) throws {
        guard let range = bytes.range(of: Data("\r\n\r\n".utf8)), range.upperBound <= RequestHead.maximumByteCount
        else {
            throw HTTPError(.fieldsTooLarge, "the head of the request does not end")
        }
        let head = try RequestHead(parsing: bytes[..<range.lowerBound])
        let endpoint = try Endpoint(head, modelName: interface.name)
        _ = (head.keepsAlive, head.expectsContinue)
        guard endpoint == .infer else { return }
        let body = Data(bytes[range.upperBound...].prefix(try head.contentLength))
        guard head.mediaType?.hasPrefix("image/") != true else { return }
        _ = try InferenceRequest(
            body, jsonByteCount: try InferenceRequest.jsonByteCount(head), interface, maximumImageCount: 64)
    }
}
