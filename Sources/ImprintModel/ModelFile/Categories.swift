public import Foundation
public import ImprintCore
internal import ImprintImages

/// Named groups of labels, such as a category "computer" with the labels laptop, desktop and notebook.
///
/// A file of categories is a JSON object with a list of labels for each name, `{"computer": ["laptop", "desktop"]}`. Each label is in at
/// most one category; labels without a category stand for themselves. There is at least one category. Each category has a name that is not
/// blank (it shows more than white space and invisible characters), and at least one label, each only once.
public struct Categories: Hashable, Sendable {
    /// The labels of each category.
    public let labels: [String: [String]]
    private let categories: [String: String]

    /// Creates categories from the labels of each.
    /// - Throws: `CategoriesError` if there are no categories, a category has a blank name or no labels, a label is in two categories, or a
    ///   category lists a label twice.
    public init(_ labels: [String: [String]]) throws(CategoriesError) {
        guard !labels.isEmpty else {
            throw CategoriesError(
                "found no category, expected at least one, such as \(Self.example). Add one, or omit the categories")
        }
        if let blank = labels.keys.sorted().first(where: isBlank) {
            throw CategoriesError("a category has the blank name \(quotedBlank(blank)). Give it a name")
        }
        try self.init(validating: labels)
    }

    private static let example = "{\"computer\": [\"laptop\", \"desktop\"]}"
    /// The maximum size of a file of categories.
    private static let maximumByteCount = 16 << 20

    private init(validating labels: [String: [String]]) throws(CategoriesError) {
        var categories: [String: String] = [:]
        for (category, group) in labels.sorted(by: { $0.key < $1.key }) {
            guard !category.isEmpty else {
                throw CategoriesError("a category has an empty name. Give it a name")
            }
            guard !group.isEmpty else {
                throw CategoriesError(
                    "the category \(category.debugDescription) has no labels, expected at least one. Add one, or remove the category"
                )
            }
            for label in group {
                if let other = categories.updateValue(category, forKey: label) {
                    guard other != category else {
                        throw CategoriesError(
                            "the category \(category.debugDescription) lists the label \(label.debugDescription) twice. Remove one of them"
                        )
                    }
                    throw CategoriesError(
                        "the label \(label.debugDescription) is in \(other.debugDescription) and in \(category.debugDescription), "
                            + "expected in one category. Remove it from the other")
                }
            }
        }
        self.labels = labels
        self.categories = categories
    }

    /// Reads a file of categories, or a pipe such as `/dev/stdin`, for a model's labels.
    ///
    /// A category with the name of a label of the model must list that label. `check(labels:)` accepts other ones for a model to which a
    /// personalization has added the label.
    /// - Throws: `CategoriesError` if the file is invalid, cannot be read or has more than 16 MB, if a category has the reserved name "none of
    ///   these" or the name of a label that it does not list. Also the errors of `check(labels:)`.
    public init(contentsOf url: URL, labels: [String]) throws(CategoriesError) {
        try self.init(contentsOf: url, labels: labels, personalLabels: [])
    }

    /// Reads a file of categories for the labels of a model and of a personalization.
    /// - Parameters:
    ///   - labels: The labels of the model.
    ///   - personalLabels: Further labels, which belong to the category of the same name even if it does not list them.
    /// - Throws: The errors of `init(contentsOf:labels:)`.
    package init(contentsOf url: URL, labels: [String], personalLabels: [String]) throws(CategoriesError) {
        let path = url.path(percentEncoded: false)
        let data: Data?
        do throws(FileError) {
            data = try contents(ofFileOrPipe: path, limit: Self.maximumByteCount)
        } catch {
            let cause = if case .cannotRead(_, let reason) = error { reason } else { "\(error)".clause }
            throw CategoriesError("the file cannot be read: \(cause). Check the name and that it is a file", in: path)
        }
        guard let data = data.map({ Data($0.withoutByteOrderMark) }) else {
            throw CategoriesError(
                "the file has more than \(Self.maximumByteCount) bytes, expected a smaller JSON object, such as \(Self.example). Check the name",
                in: path)
        }
        do {
            try self.init(Self.parsed(Array(data)))
            try check(labels: labels + personalLabels)
            try checkNames(labels: labels)
        } catch {
            guard let format = BoxFormat(data, of: url) else { throw CategoriesError(error.reason, in: path) }
            throw CategoriesError(
                "the file has bounding boxes in the \(format.rawValue) format, expected a list of labels for each category, such as "
                    + "\(Self.example). Check the name", in: path)
        }
    }

    /// Returns the labels of each category in a file.
    ///
    /// A JSON decoder would silently drop the first of two categories with the same name.
    private static func parsed(_ bytes: [UInt8]) throws(CategoriesError) -> [String: [String]] {
        var labels: [String: [String]] = [:]
        var scanner = StrictJSONScanner(bytes)
        do {
            scanner.skipSpace()
            try scanner.object { (scanner, category) throws(StrictJSONScanner.Problem) in
                labels[category] = try scanner.strings()
            }
            try scanner.end()
        } catch .duplicateKey(let category) {
            throw CategoriesError(
                "the category \(category.debugDescription) appears twice. Put its labels into one list")
        } catch {
            throw CategoriesError(
                "the file is invalid: expected a JSON object with a list of labels for each category, such as \(example)"
            )
        }
        return labels
    }

    /// The names of the categories, in order.
    public var names: [String] { labels.keys.sorted() }

    /// Returns the category of a label; nil if it has none.
    ///
    /// A label with the same name as a category belongs to it even if it is not listed, because a personalization may add such a label.
    public func category(of label: String) -> String? { categories[label] ?? (labels[label] == nil ? nil : label) }

    /// Checks that the categories fit a model's labels.
    /// - Parameter known: The labels of the model.
    /// - Throws: `CategoriesError` if the model does not have a label, or a category has the name of a label in another category.
    public func check(labels known: [String]) throws(CategoriesError) {
        let knownLabels = Set(known)
        if let unknown = categories.keys.sorted().first(where: { !knownLabels.contains($0) }) {
            let name = quoted(unknown, similarTo: known)
            throw CategoriesError(
                "the label \(name) of the category \((categories[unknown] ?? "").debugDescription) is not a label "
                    + "of the model. Remove it, or correct its spelling")
        }
        if let taken = names.first(where: { category(of: $0) != $0 }) {
            throw CategoriesError(
                "the category \(taken.debugDescription) has the name of a label in \((categories[taken] ?? "").debugDescription). Move the "
                    + "label into it, or rename the category")
        }
    }

    /// Checks that no category has a reserved name, or the name of a label that it does not list.
    private func checkNames(labels known: [String]) throws(CategoriesError) {
        if let name = ImageFolder.reservedLabel(in: names, reserved: [ImageFolder.rejectionText]) {
            throw CategoriesError(
                "the category \(name.debugDescription) has a reserved name, which results show for photos of none of the labels. "
                    + "Rename the category")
        }
        let unlisted = Set(known).subtracting(categories.keys)
        if let name = names.first(where: { unlisted.contains($0) }) {
            throw CategoriesError(
                "the category \(name.debugDescription) has the name of the label \(name.debugDescription), which it does not list. "
                    + "Rename the category, or put the label into it")
        }
    }
}

extension Categories: Codable {
    /// Decodes and checks categories.
    ///
    /// Unlike `init(_:)`, it accepts blank names and an empty object, which earlier versions wrote.
    /// - Throws: `CategoriesError` if a name is empty, a category has no labels or a label is in two categories; `DecodingError`.
    public init(from decoder: any Decoder) throws {
        try self.init(validating: [String: [String]](from: decoder))
    }

    /// Encodes an object with a list of labels for each category.
    public func encode(to encoder: any Encoder) throws { try labels.encode(to: encoder) }
}

/// An error in categories.
public struct CategoriesError: DescribedError, Hashable {
    /// The problem and the fix.
    let reason: String
    /// The file; nil if the categories were not read from a file.
    let path: String?

    init(_ reason: String, in path: String? = nil) { (self.reason, self.path) = (reason, path) }

    /// The file, the problem, the expected content and the fix.
    public var description: String { "\(path ?? "the categories"): \(reason)".sentence }
}
