public import Foundation
public import ImprintCore
internal import ImprintImages

/// Groups of labels under one name each: computer for laptop, desktop and notebook.
///
/// As a file it is a JSON object with a list of labels for each name, `{"computer": ["laptop", "desktop"]}`. A label is in one category at
/// most; labels in none stand for themselves. There is at least one category, and each has a name that can be read and a label.
public struct Categories: Hashable, Sendable {
    /// The labels of each category.
    public let labels: [String: [String]]
    private let categories: [String: String]

    /// Takes the labels of each category.
    /// - Throws: `CategoriesError` if there is no category, one has no name, a blank one or no labels, or a label is in two.
    public init(_ labels: [String: [String]]) throws(CategoriesError) {
        guard !labels.isEmpty else {
            throw CategoriesError(
                "found no category, expected at least one, such as \(Self.example); add one, or leave categories out")
        }
        if let blank = labels.keys.sorted().first(where: { $0.allSatisfy(\.isWhitespace) }) {
            throw CategoriesError("a category has no name but \(blank.debugDescription), expected a word; give it one")
        }
        try self.init(unequivocal: labels)
    }

    private static let example = "{\"computer\": [\"laptop\", \"desktop\"]}"

    private init(unequivocal labels: [String: [String]]) throws(CategoriesError) {
        var categories: [String: String] = [:]
        for (category, members) in labels.sorted(by: { $0.key < $1.key }) {
            guard !category.isEmpty else {
                throw CategoriesError("a category has no name, expected a word; give it one")
            }
            guard !members.isEmpty else {
                throw CategoriesError(
                    "the category \(category.debugDescription) has no labels, expected at least one; leave it out, or add one"
                )
            }
            for label in members {
                if let other = categories.updateValue(category, forKey: label) {
                    throw CategoriesError(
                        "the label \(label.debugDescription) is in \(other.debugDescription) and in \(category.debugDescription), "
                            + "expected it once; take it out of one of them")
                }
            }
        }
        self.labels = labels
        self.categories = categories
    }

    /// Reads a file of categories for a model's labels.
    /// - Throws: `CategoriesError` if it is none or cannot be read, and as `check(labels:)`.
    public init(contentsOf url: URL, labels: [String]) throws(CategoriesError) {
        let path = url.path(percentEncoded: false)
        let data: Data
        do {
            // Also if it is a pipe.
            data = try FileHandle(forReadingFrom: url).readToEnd() ?? Data()
        } catch {
            throw CategoriesError(
                "it cannot be read: \(reason(of: error)); check the name and that it is a file", in: path)
        }
        do {
            try self.init(Self.scanned(Array(data)))
            try check(labels: labels)
        } catch {
            throw CategoriesError(error.reason, in: path)
        }
    }

    /// The labels of each category, as a file has them; a decoder of JSON would take the last of two categories of one name.
    private static func scanned(_ bytes: [UInt8]) throws(CategoriesError) -> [String: [String]] {
        var labels: [String: [String]] = [:]
        var scanner = HeaderScanner(bytes)
        do {
            scanner.skipSpace()
            try scanner.object { (scanner, category) throws(HeaderScanner.Problem) in
                labels[category] = try scanner.strings()
            }
            try scanner.end()
        } catch .duplicateKey(let category) {
            throw CategoriesError(
                "the category \(category.debugDescription) is there twice; put its labels into one list")
        } catch {
            throw CategoriesError(
                "expected a JSON object with a list of labels for each category, such as \(example)")
        }
        return labels
    }

    /// The names of the categories, in order.
    public var names: [String] { labels.keys.sorted() }

    /// The category that a label is in; nil if it is in none.
    ///
    /// A label that is called as a category is in it, listed or not: a personalization may add one of that name.
    public func category(of label: String) -> String? { categories[label] ?? (labels[label] == nil ? nil : label) }

    /// Checks that the categories are of a model's labels.
    /// - Parameter known: The labels of the model.
    /// - Throws: `CategoriesError` if a label is none of the model's, or a category is called as a label that another one lists.
    public func check(labels known: [String]) throws(CategoriesError) {
        let known = Set(known)
        if let unknown = categories.keys.sorted().first(where: { !known.contains($0) }) {
            throw CategoriesError(
                "the label \(unknown.debugDescription) of the category \((categories[unknown] ?? "").debugDescription) is none of the "
                    + "model's; take it out, or spell it as the model does")
        }
        if let taken = names.first(where: { category(of: $0) != $0 }) {
            throw CategoriesError(
                "the category \(taken.debugDescription) is called as a label of \((categories[taken] ?? "").debugDescription); put the label "
                    + "into it, or call the category otherwise")
        }
    }
}

extension Categories: Codable {
    /// Reads what `encode(to:)` writes, and checks it as `init(_:)` does, except that earlier versions wrote no category at all and blank names
    /// too.
    public init(from decoder: any Decoder) throws {
        try self.init(unequivocal: [String: [String]](from: decoder))
    }

    /// Writes an object with a list of labels for each category.
    public func encode(to encoder: any Encoder) throws { try labels.encode(to: encoder) }
}

/// Why categories cannot be used.
public struct CategoriesError: DescribedError, Hashable {
    /// What is wrong.
    let reason: String
    /// The file; nil if they come from none.
    let path: String?

    init(_ reason: String, in path: String? = nil) { (self.reason, self.path) = (reason, path) }

    /// The file, what was found, what was expected and what to do.
    public var description: String { (path ?? "the categories") + ": " + reason }
}
