internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// An example of a class.
struct Example: Sendable {
    /// The number that identifies the example, which no other example of this run of the studio has.
    let id: Int
    /// The bytes of the photo's file.
    let photo: Data
    /// The middle of the photo, as a small JPEG.
    let thumbnail: Data

    var byteCount: Int { photo.count + thumbnail.count }
}

/// The collected examples of each class, only in memory.
struct Examples: Sendable {
    /// The maximum number of bytes of all examples, with their thumbnails.
    static let byteLimit = 64 << 20
    /// The maximum number of classes.
    static let classLimit = 50
    /// The minimum number of examples of a class for training.
    static let minimumExampleCount = 3
    /// The recommended number of examples of a class.
    static let recommendedExampleCount = 12
    /// The minimum number of examples of a class for comparing two base models.
    static let minimumComparisonCount = 8

    /// A class and its examples.
    struct Class: Sendable {
        let label: String
        var examples: [Example] = []

        /// The photos of the examples.
        var photos: [Data] { examples.map(\.photo) }
    }

    /// The classes; only this type and its extensions change them.
    var classes: [Class] = [] {
        didSet { version += 1 }
    }
    /// The latest deletions and moves.
    var undo = ExampleUndo()

    /// The number of changes, so that a page can ignore an older response that arrives late.
    private(set) var version = 0
    /// The number of examples that were ever added.
    private var added = 0

    /// The number of examples of all classes.
    var count: Int { classes.reduce(0) { $0 + $1.examples.count } }

    var byteCount: Int { classes.reduce(0) { $0 + $1.examples.reduce(0) { $0 + $1.byteCount } } }

    /// Adds a class, unless it exists.
    /// - Parameter known: The labels of the model, whose names are valid already.
    mutating func add(class label: String, known: [String]) throws {
        guard !classes.contains(where: { $0.label == label }) else { return }
        if !known.contains(label) { try Self.check(name: label) }
        guard classes.count < Self.classLimit else { throw Self.tooManyClasses }
        classes.append(Class(label: label))
    }

    static let tooManyClasses = RequestError("There are already \(classLimit) classes. Delete one first.")

    /// Checks the name of a new class, which must be a valid folder name, like the labels of other training data.
    static func check(name: String) throws {
        try UserText.checkFolderName(name, "The name of a class", fix: "Choose another name.")
    }

    /// Adds an example to a class.
    /// - Parameter isFile: Whether the photo is a file, which can be an example of a class only once. Cameras may deliver equal frames.
    mutating func add(_ photo: Data, thumbnail: Data = Data(), to label: String, isFile: Bool = false) throws {
        let index = try index(of: label)
        guard !isFile || !classes[index].examples.contains(where: { $0.photo == photo }) else {
            throw RequestError(
                "The photo is already an example of \"\(label)\", and a copy teaches nothing new. Choose another photo.",
                .conflict)
        }
        let example = Example(id: added + 1, photo: photo, thumbnail: thumbnail)
        guard byteCount + example.byteCount <= Self.byteLimit else {
            throw RequestError(
                "All examples may take at most \(Self.byteLimit >> 20) MB. Delete some of them.",
                .payloadTooLarge)
        }
        added += 1
        classes[index].examples.append(example)
    }

    /// Returns the example with a number.
    func example(_ id: Int) throws -> Example {
        let (classIndex, index) = try position(of: id)
        return classes[classIndex].examples[index]
    }

    /// Returns the index of the class of an example, and its index in the class.
    func position(of id: Int) throws -> (classIndex: Int, index: Int) {
        for (classIndex, part) in classes.enumerated() {
            if let index = part.examples.firstIndex(where: { $0.id == id }) { return (classIndex, index) }
        }
        throw RequestError("There is no such example. It may have been deleted in another tab.", .notFound)
    }

    func index(of label: String) throws -> Int {
        guard let index = classes.firstIndex(where: { $0.label == label }) else {
            throw RequestError("There is no class \"\(label)\". Add it first.", .notFound)
        }
        return index
    }

    /// Returns the reason why the examples are not sufficient for training; nil if they are.
    /// - Parameter minimum: The minimum number of classes.
    func shortage(minimum: Int) -> String? {
        let incomplete = classes.filter { $0.examples.count < Self.minimumExampleCount }
        if let first = incomplete.first {
            return incomplete.count == 1
                ? "“\(first.label)” has \(first.examples.count) of the \(Self.minimumExampleCount) examples that a class needs."
                : "\(incomplete.count) classes have fewer than \(Self.minimumExampleCount) examples. Each class needs that many."
        }
        guard classes.count < minimum else { return nil }
        return minimum == 1
            ? "Add a class and collect examples of it."
            : "A new model needs at least two classes: add \(minimum - classes.count) more and collect examples of each."
    }

    /// Returns the reason why the examples are not sufficient for comparing two base models, or nil if they are.
    var comparisonShortage: String? {
        let minimum = Self.minimumComparisonCount
        guard classes.allSatisfy({ $0.examples.count >= minimum }) else {
            return "Teach at least \(minimum) examples per label to compare."
        }
        return withoutCopies.classes.allSatisfy { $0.examples.count >= minimum }
            ? nil : "Teach at least \(minimum) different examples per label to compare; some are copies of each other."
    }

    /// The examples without repeated photos of a class.
    var withoutCopies: Examples {
        var examples = self
        for index in classes.indices {
            var seen: Set<Data> = []
            examples.classes[index].examples.removeAll { !seen.insert($0.photo).inserted }
        }
        return examples
    }

    /// The classes in the order of their sub-folders in a training folder.
    private var sortedClasses: [Class] { classes.sorted { precedes($0.label, $1.label) } }

    /// Returns the path of an example in a training folder.
    ///
    /// All names of sub-folders have the same number of digits, so that they sort in the order of the labels.
    private static func path(_ classIndex: Int, _ photoIndex: Int) -> String {
        "\(100 + classIndex)/\(photoIndex).image"
    }

    /// Returns the paths of the examples in a training folder, in blocks of consecutive examples of a class.
    /// - Parameter count: The number of blocks of each class.
    func pathsOfBlocks(count: Int) -> [[String]] {
        sortedClasses.enumerated().flatMap { classIndex, part in
            (0..<count).map { block in
                let photos = part.examples.count
                return (block * photos / count..<(block + 1) * photos / count).map { Self.path(classIndex, $0) }
            }
        }
    }

    /// Writes the examples into a training folder with one sub-folder per class.
    ///
    /// The names of the sub-folders are numbers, because some file systems ignore case ("Cup" and "cup") and some names
    /// are reserved.
    func write(to folder: URL) throws -> ImageFolder {
        let classes = sortedClasses
        for (classIndex, part) in classes.enumerated() {
            for (photoIndex, photo) in part.photos.enumerated() {
                let file = folder.appending(path: Self.path(classIndex, photoIndex))
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try photo.write(to: file)
            }
        }
        return try ImageFolder(at: folder).renaming(labels: classes.map(\.label))
    }
}
