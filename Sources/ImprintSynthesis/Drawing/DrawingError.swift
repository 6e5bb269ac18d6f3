package import Foundation
internal import ImprintCore
internal import ImprintImages

/// An unusable recipe, or a data set that cannot be drawn.
///
/// The description of each case names the file, the problem, the expected state and the fix.
package enum DrawingError: DescribedError, Equatable, Sendable {
    /// There is no recipe of that name; `available` are the names of the recipes in `folders`, which are the searched folders with recipes.
    case noSuchRecipe(name: String, available: [String], folders: [URL])
    /// The file cannot be read; `reason` comes from the operating system.
    case unreadable(file: URL, reason: String)
    /// The file of the recipe is not a JSON object.
    case notAnObject(file: URL)
    /// The file has bounding boxes instead of a recipe; `format` is COCO or Create ML.
    case hasBoxes(file: URL, format: String)
    /// A field of the recipe is missing or has an unusable value.
    case invalidField(file: URL, field: String, found: String, expected: String)
    /// The number of images is smaller than the number of labels, or too large.
    case invalidCount(count: Int, expected: ClosedRange<Int>)
    /// The folder holds files that are not from a drawn data set; `found` is one of them.
    case foreignFolder(folder: URL, found: String)
    /// The folder holds a data set that was drawn with another recipe, count or seed.
    case otherDrawing(folder: URL, found: String, expected: String)
}

extension DrawingError {
    /// The error in one or two sentences.
    package var description: String {
        switch self {
        case .noSuchRecipe(let name, let available, let folders):
            "There is no recipe \"\(name)\". "
                + (available.isEmpty
                    ? "Neither the current folder nor the program's folder, nor a folder above them, has a folder named datasets with recipes. "
                        + "Use the path"
                    : "Recipes in \(folders.map(\.path).joined(separator: " and ")): \(available.joined(separator: ", ")). "
                        + "Use one of these names, or the path")
                + " of a .json file."
        case .unreadable(let file, let reason):
            "\(file.path) cannot be read: \(reason). Check that the file exists and that you may read it."
        case .notAnObject(let file):
            "\(file.path): the content is not a JSON object, expected a recipe. See datasets/README.md."
        case .hasBoxes(let file, let format):
            "\(file.path): the file has bounding boxes in the \(format) format. Expected a recipe. Use it as the annotations of a detector, "
                + "or name a recipe."
        case .invalidField(let file, let field, let found, let expected):
            "\(file.path): the field \"\(field)\" is \(found), expected \(expected). See datasets/README.md."
        case .invalidCount(let count, let expected):
            "The data set cannot have \(counted(count, "image")), expected \(expected.lowerBound) to \(expected.upperBound)."
        case .foreignFolder(let folder, let found):
            "\(folder.path) holds \"\(found)\", expected an empty folder or a drawn data set. Choose another folder."
        case .otherDrawing(let folder, let found, let expected):
            "\(folder.path) holds a data set drawn from \(found), expected \(expected). "
                + "Remove it or choose another folder."
        }
    }
}

extension DrawingError {
    /// Creates the error for a decoding error; `content` is the decoded JSON, in which the invalid value is looked up.
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
        case is String.Type: "a string"
        case is Int.Type, is UInt64.Type: "a whole number"
        case is Float.Type: "a number"
        case is [Any].Type: "a list"
        default: "\(type)" == "ClosedRange<Float>" ? "[lowest, highest]" : "a value of another type"
        }
    }
}
