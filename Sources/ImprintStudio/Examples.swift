internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// Pictures that were collected for classes: the bytes of their files, in memory alone.
struct Examples: Sendable {
    /// How many bytes all of them may take.
    static let byteLimit = 64 << 20
    /// How many classes there may be.
    static let classLimit = 50
    /// How many examples of a class are needed to learn it.
    static let least = 3

    /// A class and what was collected for it.
    struct Class: Sendable {
        let label: String
        var photos: [Data] = []
    }

    private(set) var classes: [Class] = []

    var byteCount: Int { classes.reduce(0) { $0 + $1.photos.reduce(0) { $0 + $1.count } } }

    /// Adds a class; nothing if there is one of the name.
    /// - Parameter known: Labels that there are already, whatever they look like.
    mutating func add(class label: String, known: [String]) throws {
        guard !classes.contains(where: { $0.label == label }) else { return }
        if !known.contains(label) { try Self.check(name: label) }
        guard classes.count < Self.classLimit else {
            throw Refusal("There are \(Self.classLimit) classes already; delete one first.")
        }
        classes.append(Class(label: label))
    }

    /// Checks what a new class is called: elsewhere, labels are the names of folders.
    private static func check(name: String) throws {
        guard !name.isEmpty, name == name.trimmingCharacters(in: .whitespacesAndNewlines), name.count <= 100 else {
            throw Refusal("A class needs a name of 1 to 100 characters, without blanks around it.")
        }
        guard !name.contains("/"), !name.contains("\0"), !name.hasPrefix(".") else {
            throw Refusal("The name of a class has no \"/\" and no leading \".\"; choose another.")
        }
        guard name.utf8.count <= 255 else {
            throw Refusal("The name of a class has at most 255 bytes, and this one has \(name.utf8.count); shorten it.")
        }
    }

    /// Adds an example to a class.
    mutating func add(_ photo: Data, to label: String) throws {
        let place = try place(of: label)
        guard byteCount + photo.count <= Self.byteLimit else {
            throw Refusal(
                "There is no room for more examples than \(Self.byteLimit >> 20) MB; delete those of a class.",
                .payloadTooLarge)
        }
        classes[place].photos.append(photo)
    }

    /// Removes a class with its examples.
    mutating func remove(_ label: String) throws { classes.remove(at: try place(of: label)) }

    private func place(of label: String) throws -> Int {
        guard let place = classes.firstIndex(where: { $0.label == label }) else {
            throw Refusal("There is no class \"\(label)\"; add it first.", .notFound)
        }
        return place
    }

    /// What is missing to learn from them; nil if nothing is.
    /// - Parameter minimum: How many classes are needed.
    func shortage(minimum: Int) -> String? {
        let few = classes.filter { $0.photos.count < Self.least }
        if let first = few.first {
            return few.count == 1
                ? "“\(first.label)” has \(first.photos.count) of the \(Self.least) examples that a class needs."
                : "\(few.count) classes have fewer than the \(Self.least) examples that each needs."
        }
        guard classes.count < minimum else { return nil }
        return minimum == 1
            ? "Add a class and collect examples of it."
            : "A new model tells classes apart: add \(minimum - classes.count) more and collect examples of each."
    }

    /// Writes them into a folder to train on: one sub-folder a class, with a number for its name, for some disks take "Cup" and "cup"
    /// for one, and some names are a system's own.
    func write(to folder: URL) throws -> ImageFolder {
        let sorted = classes.sorted { precedes($0.label, $1.label) }
        for (place, part) in sorted.enumerated() {
            // All numbers have as many digits, so that they are in the order of the labels.
            let own = folder.appending(path: "\(100 + place)", directoryHint: .isDirectory)
            try FileManager.default.createDirectory(at: own, withIntermediateDirectories: false)
            for (number, photo) in part.photos.enumerated() {
                try photo.write(to: own.appending(path: "\(number).image"))
            }
        }
        return try ImageFolder(at: folder).renaming(labels: sorted.map(\.label))
    }
}
