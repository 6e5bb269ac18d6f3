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
    private enum Kind: CaseIterable {
        case number
        case string
        case array
    }

    /// The maximum depth of nested arrays; tensors have at most four axes.
    private static let maximumDepth = 8

    init(from decoder: any Decoder) throws {
        var numbers: [Double] = []
        var strings: [String] = []
        try Self.append(try decoder.unkeyedContainer(), &numbers, &strings, depth: 1)
        self = strings.isEmpty ? .numbers(numbers) : .strings(strings)
    }

    private static func append(
        _ container: any UnkeyedDecodingContainer, _ numbers: inout [Double], _ strings: inout [String], depth: Int
    ) throws {
        guard depth <= maximumDepth else {
            throw HTTPError(
                .badRequest, "the data of an input is nested too deeply, expected at most \(maximumDepth) levels")
        }
        var container = container
        if let count = container.count, depth == 1 { numbers.reserveCapacity(count) }
        // The kind of the last element comes first: failed attempts are slow, and all elements of an array usually have the same kind.
        var kinds = Kind.allCases
        while !container.isAtEnd {
            let found = try kinds.firstIndex { kind in
                switch kind {
                case .number:
                    guard let number = try? container.decode(Double.self) else { return false }
                    numbers.append(number)
                case .string:
                    guard let text = try? container.decode(String.self) else { return false }
                    strings.append(text)
                case .array:
                    guard let nested = try? container.nestedUnkeyedContainer() else { return false }
                    try append(nested, &numbers, &strings, depth: depth + 1)
                }
                return true
            }
            guard let found else {
                throw HTTPError(
                    .badRequest, "the data of an input has an element that is neither a number in range nor a string")
            }
            guard numbers.isEmpty || strings.isEmpty else {
                throw HTTPError(.badRequest, "the data of an input has both numbers and strings")
            }
            kinds.swapAt(0, found)
        }
    }
}
