internal import Foundation

/// The JSON part of an inference request.
struct InferenceMessage: Decodable {
    struct Input: Decodable {
        struct Parameters: Decodable {
            var binaryDataByteCount: Int?

            private enum CodingKeys: String, CodingKey { case binaryDataByteCount = "binary_data_size" }
        }

        let name: String
        let shape: [Int]
        let datatype: String
        var parameters: Parameters?
        var data: TensorElements?
    }

    struct Output: Decodable {
        struct Parameters: Decodable {
            var isBinary: Bool?
            /// The number of labels, for the classification extension.
            var classification: Int?

            private enum CodingKeys: String, CodingKey {
                case isBinary = "binary_data"
                case classification
            }
        }

        let name: String
        var parameters: Parameters?
    }

    struct Parameters: Decodable {
        /// Whether outputs are binary unless they say otherwise.
        var hasBinaryOutputs: Bool?
        /// The minimum confidence of an object.
        var minimumConfidence: Double?

        private enum CodingKeys: String, CodingKey {
            case hasBinaryOutputs = "binary_data_output"
            case minimumConfidence = "minimum_confidence"
        }
    }

    var id: String?
    var parameters: Parameters?
    let inputs: [Input]
    var outputs: [Output]?

    /// Decodes the JSON part of a request.
    static func decode(_ json: Data) throws(HTTPError) -> InferenceMessage {
        do {
            return try JSONDecoder().decode(InferenceMessage.self, from: json)
        } catch let error as DecodingError {
            throw HTTPError(.badRequest, "the JSON of the request is invalid: \(description(of: error))")
        } catch let error as HTTPError {
            throw error
        } catch {
            throw HTTPError(.badRequest, "the JSON of the request is invalid: \(error.localizedDescription)")
        }
    }

    private static func description(of error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, let context): "\(path(context.codingPath + [key])) is missing"
        case .valueNotFound(let type, let context): "\(path(context.codingPath)) is null, expected \(name(of: type))"
        case .typeMismatch(let type, let context):
            "\(path(context.codingPath)) has another type, expected \(name(of: type))"
        // The decoder does not say which of the two it is.
        case .dataCorrupted(let context) where context.codingPath.isEmpty:
            "it is not a JSON text, or a number is not in its range"
        case .dataCorrupted(let context): "\(path(context.codingPath)) is not in its range"
        @unknown default: "it is not a JSON text"
        }
    }

    private static func name(of type: Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Bool.Type: "true or false"
        case is Int.Type: "a whole number"
        case is Double.Type: "a number"
        default: "\(type)".hasPrefix("Array") ? "an array" : "an object"
        }
    }

    /// Returns a path such as `inputs[0].shape`.
    private static func path(_ keys: [any CodingKey]) -> String {
        keys.isEmpty
            ? "the request"
            : keys.reduce("") { path, key in
                key.intValue.map { "\(path)[\($0)]" } ?? (path.isEmpty ? "" : "\(path).")
                    + String(key.stringValue.prefix(60))
            }
    }
}

/// The elements of a JSON tensor in row-major order, which clients send as a flat array or as nested arrays.
enum TensorElements: Decodable {
    case numbers([Double])
    case strings([String])

    /// The kinds of elements of an array.
    private enum Kind: String, CaseIterable {
        case number = "numbers"
        case string = "strings"
        case array = "arrays"

        /// Returns the kind of the next element of an array; nil for another one.
        init?(next container: any UnkeyedDecodingContainer) {
            let kind = Self.allCases.first { kind in
                // Attempts on a copy do not consume the element.
                var container = container
                return switch kind {
                case .number: (try? container.decode(Double.self)) != nil
                case .string: (try? container.decode(String.self)) != nil
                case .array: (try? container.nestedUnkeyedContainer()) != nil
                }
            }
            guard let kind else { return nil }
            self = kind
        }
    }

    /// The maximum depth of nested arrays; tensors have at most four axes.
    private static let maximumDepth = 8

    init(from decoder: any Decoder) throws {
        var reader = Reader()
        try reader.append(try decoder.unkeyedContainer(), depth: 1)
        self = reader.strings.isEmpty ? .numbers(reader.numbers) : .strings(reader.strings)
    }

    /// Collects the elements.
    private struct Reader {
        var numbers: [Double] = []
        var strings: [String] = []
        /// The kind of the elements at each depth: that of the first one.
        ///
        /// Failed attempts to decode an element are slow, so there must be few of them for each request.
        private var kinds: [Kind] = []

        mutating func append(_ elements: any UnkeyedDecodingContainer, depth: Int) throws {
            guard depth <= maximumDepth else {
                throw HTTPError(
                    .badRequest, "the data of an input is nested too deeply, expected at most \(maximumDepth) levels")
            }
            var container = elements
            if let count = container.count, depth == 1 { numbers.reserveCapacity(count) }
            while !container.isAtEnd {
                if kinds.count < depth {
                    guard let kind = Kind(next: container) else { throw Self.unknownElement }
                    kinds.append(kind)
                }
                let kind = kinds[depth - 1]
                switch kind {
                case .number:
                    guard let number = try? container.decode(Double.self) else {
                        throw Self.mismatch(of: container, kind)
                    }
                    numbers.append(number)
                case .string:
                    guard let text = try? container.decode(String.self) else {
                        throw Self.mismatch(of: container, kind)
                    }
                    strings.append(text)
                case .array:
                    guard let nested = try? container.nestedUnkeyedContainer() else {
                        throw Self.mismatch(of: container, kind)
                    }
                    try append(nested, depth: depth + 1)
                }
            }
        }

        private static let unknownElement = HTTPError(
            .badRequest, "the data of an input has an element that is neither a number in range nor a string")

        /// Returns the error of an element that is not of the expected kind.
        private static func mismatch(of container: any UnkeyedDecodingContainer, _ expected: Kind) -> HTTPError {
            guard let found = Kind(next: container) else { return unknownElement }
            let kinds = Kind.allCases.filter { $0 == expected || $0 == found }.map(\.rawValue)
            return HTTPError(
                .badRequest, "the data of an input has both \(kinds.joined(separator: " and ")) at the same depth")
        }
    }
}
