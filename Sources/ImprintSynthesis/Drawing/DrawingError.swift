public import Foundation
public import ImprintCore
internal import ImprintImages

/// Why a recipe could not be used or a data set not be drawn.
///
/// The text of each case names the file, what was found, what was expected and what to do about it.
public enum DrawingError: DescribedError, Equatable, Sendable {
    /// No folder that was `searched` holds a recipe of that name; `available` are the names of those found.
    case noSuchRecipe(name: String, available: [String], searched: [URL])
    /// The file of the recipe, or of an earlier drawing, cannot be read; `reason` is the system's.
    case unreadable(file: URL, reason: String)
    /// The file of the recipe is not a JSON object.
    case notAnObject(file: URL)
    /// A field of the recipe is missing or has an unusable value.
    case invalidField(file: URL, field: String, found: String, expected: String)
    /// Fewer images than labels were asked for, or more than file names can number.
    case invalidCount(count: Int, expected: ClosedRange<Int>)
    /// The folder holds something that no drawing put there; `found` is one of its entries.
    case foreignFolder(folder: URL, found: String)
    /// The folder holds a data set that was drawn with another recipe, count or seed.
    case otherDrawing(folder: URL, found: String, expected: String)
    /// A folder or file of the data set cannot be written; `reason` is the system's.
    case unwritable(file: URL, reason: String)
}

extension DrawingError {
    /// The error in one or two sentences.
    public var description: String {
        switch self {
        case .noSuchRecipe(let name, let available, let searched):
            "There is no recipe \"\(name)\". "
                + (available.isEmpty
                    ? "No recipes were found" : "Available: \(available.joined(separator: ", "))")
                + " (looked in \(searched.map(\.path).joined(separator: ", "))). "
                + "Give one of the names or the path of a .json file."
        case .unreadable(let file, let reason):
            "\(file.path) cannot be read: \(reason). Check that the file exists and that you may read it."
        case .notAnObject(let file):
            "\(file.path): expected a recipe, a JSON object, found something else. See datasets/README.md."
        case .invalidField(let file, let field, let found, let expected):
            "\(file.path): the field \"\(field)\" is \(found), expected \(expected). See datasets/README.md."
        case .invalidCount(let count, let expected):
            "\(count) images were asked for, expected \(expected.lowerBound) to \(expected.upperBound)."
        case .foreignFolder(let folder, let found):
            "\(folder.path) is not empty: it holds \"\(found)\", expected an empty folder or one drawn before. "
                + "Choose another folder."
        case .otherDrawing(let folder, let found, let expected):
            "\(folder.path) holds a data set drawn with \(found), expected \(expected). "
                + "Remove it or choose another folder."
        case .unwritable(let file, let reason):
            "\(file.path) cannot be written: \(reason). Check the folder, its permissions and the free space."
        }
    }
}

extension DrawingError {
    /// The error for a recipe that does not decode; `content` is what the file holds, to say what was found.
    init(_ error: DecodingError, content: Any, file: URL) {
        let path: [any CodingKey]
        let expected: String
        switch error {
        case .keyNotFound(let key, let context):
            path = context.codingPath + [key]
            expected = "a value"
        case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
            path = context.codingPath
            expected = Self.name(of: type)
        case .dataCorrupted(let context):
            path = context.codingPath
            expected = context.debugDescription
        @unknown default:
            path = []
            expected = "a recipe"
        }
        var value: Any? = content
        var field = ""
        for key in path {
            if let index = key.intValue {
                let array = value as? [Any] ?? []
                value = array.indices.contains(index) ? array[index] : nil
                field += "[\(index)]"
            } else {
                value = (value as? [String: Any])?[key.stringValue]
                field += (field.isEmpty ? "" : ".") + key.stringValue
            }
        }
        let found = value.map { $0 is String ? "\"\($0)\"" : "\($0)" } ?? "missing"
        self = .invalidField(file: file, field: field, found: found, expected: expected)
    }

    private static func name(of type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a text"
        case is Int.Type, is UInt64.Type: "a whole number"
        case is Float.Type: "a number"
        case is [Any].Type: "a list"
        default: "\(type)" == "ClosedRange<Float>" ? "[lowest, highest]" : "a value of another kind"
        }
    }
}
