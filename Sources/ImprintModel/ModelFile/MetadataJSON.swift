import Foundation
internal import ImprintCore

// The JSON in the metadata of a model file. Keys are sorted, so equal values give equal text. NaN and infinities, such as a diverged loss, are
// strings, because JSON lacks them.

private let notANumber = "NaN"
private let infinity = "Infinity"
private let negativeInfinity = "-Infinity"

/// Returns the JSON of `value`.
package func json(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
        positiveInfinity: infinity, negativeInfinity: negativeInfinity, nan: notANumber)
    return String(decoding: try encoder.encode(value), as: UTF8.self)
}

/// Returns a decoder for the JSON of `json(_:)`.
func metadataDecoder() -> JSONDecoder {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
        positiveInfinity: infinity, negativeInfinity: negativeInfinity, nan: notANumber)
    return decoder
}

/// Decodes the JSON of a metadata key.
func value<Value: Decodable>(
    _ key: String, in metadata: [String: String]
) throws(ModelFileError.Problem) -> Value {
    guard let text = metadata[key] else { throw .missingMetadata(key: key) }
    guard nestingDepth(text) <= 64 else {
        throw .invalidMetadata(key: key, reason: "it is nested more than 64 levels deep")
    }
    do {
        return try metadataDecoder().decode(Value.self, from: Data(text.utf8))
    } catch let error as DecodingError {
        throw .invalidMetadata(key: key, reason: explanation(error))
    } catch {
        throw .invalidMetadata(key: key, reason: "\(error)".clause)
    }
}

/// Returns the digest of a file's metadata without its digest entries.
func textDigest(of metadata: [String: String]) -> String {
    let lines = metadata.filter { !["imprint.digest", "imprint.textDigest"].contains($0.key) }
        .sorted { precedes($0.key, $1.key) }.map { "\($0.key)\t\($0.value)\n" }
    return SHA256.hexadecimal(of: Array(lines.joined().utf8))
}

/// Returns the maximum nesting depth of the brackets in `text`, which bounds the recursion of a parser.
private func nestingDepth(_ text: String) -> Int {
    var depth = 0
    var deepest = 0
    var inString = false
    var escaped = false
    for byte in text.utf8 {
        switch byte {
        case _ where escaped: escaped = false
        case UInt8(ascii: "\\"): escaped = inString
        case UInt8(ascii: "\""): inString.toggle()
        case _ where inString: break
        case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
        case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
        default: break
        }
        deepest = max(deepest, depth)
    }
    return deepest
}

/// Returns the reason why JSON could not be decoded.
package func explanation(_ error: DecodingError) -> String {
    func location(_ context: DecodingError.Context) -> String {
        let path = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
        return path.isEmpty ? "" : " at \(path)"
    }
    return switch error {
    case .keyNotFound(let key, let context): "\(key.stringValue) is missing\(location(context))"
    case .typeMismatch(_, let context), .valueNotFound(_, let context): "a value of the wrong type\(location(context))"
    case .dataCorrupted(let context): "\(context.debugDescription)\(location(context))"
    @unknown default: "\(error)"
    }
}
