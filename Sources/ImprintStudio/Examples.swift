internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// The collected example photos of each class: the bytes of their files, only in memory.
struct Examples: Sendable {
    /// The maximum number of bytes of all examples.
    static let byteLimit = 64 << 20
    /// The maximum number of classes.
    static let classLimit = 50
    /// The minimum number of examples of a class for training.
    static let minimumExampleCount = 3

    /// A class and its examples.
    struct Class: Sendable {
        let label: String
        var photos: [Data] = []
    }

    private(set) var classes: [Class] = []

    var byteCount: Int { classes.reduce(0) { $0 + $1.photos.reduce(0) { $0 + $1.count } } }

    /// Adds a class, unless it exists.
    /// - Parameter known: The labels of the model, whose names need no check.
    mutating func add(class label: String, known: [String]) throws {
        guard !classes.contains(where: { $0.label == label }) else { return }
        if !known.contains(label) { try Self.check(name: label) }
        guard classes.count < Self.classLimit else {
            throw RequestError("There are already \(Self.classLimit) classes. Delete one first.")
        }
        classes.append(Class(label: label))
    }

    /// Checks the name of a new class, because training uses labels as folder names.
    private static func check(name: String) throws {
        guard !name.isEmpty, name == name.trimmingCharacters(in: .whitespacesAndNewlines), name.count <= 100 else {
            throw RequestError("A class needs a name of 1 to 100 characters, without leading or trailing spaces.")
        }
        guard !name.contains("/"), !name.contains("\0"), !name.hasPrefix(".") else {
            throw RequestError("The name of a class must not contain \"/\" or begin with \".\". Choose another name.")
        }
        guard name.utf8.count <= 255 else {
            throw RequestError(
                "The name of a class may have at most 255 bytes, but this one has \(name.utf8.count). Shorten it.")
        }
    }

    /// Adds an example to a class.
    mutating func add(_ photo: Data, to label: String) throws {
        let index = try index(of: label)
        guard byteCount + photo.count <= Self.byteLimit else {
            throw RequestError(
                "All examples may take at most \(Self.byteLimit >> 20) MB. Delete a class.",
                .payloadTooLarge)
        }
        classes[index].photos.append(photo)
    }

    /// Removes a class with its examples.
    mutating func remove(_ label: String) throws { classes.remove(at: try index(of: label)) }

    private func index(of label: String) throws -> Int {
        guard let index = classes.firstIndex(where: { $0.label == label }) else {
            throw RequestError("There is no class \"\(label)\". Add it first.", .notFound)
        }
        return index
    }

    /// Returns the reason why the examples are not sufficient for training; nil if they are.
    /// - Parameter minimum: The minimum number of classes.
    func shortage(minimum: Int) -> String? {
        let incomplete = classes.filter { $0.photos.count < Self.minimumExampleCount }
        if let first = incomplete.first {
            return incomplete.count == 1
                ? "“\(first.label)” has \(first.photos.count) of the \(Self.minimumExampleCount) examples that a class needs."
                : "\(incomplete.count) classes have fewer than \(Self.minimumExampleCount) examples. Each class needs that many."
        }
        guard classes.count < minimum else { return nil }
        return minimum == 1
            ? "Add a class and collect examples of it."
            : "A new model needs at least two classes: add \(minimum - classes.count) more and collect examples of each."
    }

    /// Writes the examples into a training folder with one sub-folder per class.
    ///
    /// The names of the sub-folders are numbers, because some file systems ignore case ("Cup" and "cup") and some names
    /// are reserved.
    func write(to folder: URL) throws -> ImageFolder {
        let sorted = classes.sorted { precedes($0.label, $1.label) }
        for (index, part) in sorted.enumerated() {
            // All names have the same number of digits, so that they sort in the order of the labels.
            let classFolder = folder.appending(path: "\(100 + index)", directoryHint: .isDirectory)
            try FileManager.default.createDirectory(at: classFolder, withIntermediateDirectories: false)
            for (photoIndex, photo) in part.photos.enumerated() {
                try photo.write(to: classFolder.appending(path: "\(photoIndex).image"))
            }
        }
        return try ImageFolder(at: folder).renaming(labels: sorted.map(\.label))
    }
}
