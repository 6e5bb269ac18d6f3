internal import Foundation

/// A deletion or move of examples that can be undone.
enum ExampleRemoval: Sendable {
    /// The deletion of an example from an index of a class.
    case example(Example, label: String, index: Int)
    /// The deletion of a class at an index of the list.
    case `class`(Examples.Class, index: Int)
    /// The move of an example from an index of a class to the end of another class.
    case move(id: Int, from: String, index: Int, to: String)

    /// The number of bytes that only the removal keeps in memory.
    var byteCount: Int {
        switch self {
        case .example(let example, _, _): example.byteCount
        case .class(let part, _): part.examples.reduce(0) { $0 + $1.byteCount }
        case .move: 0
        }
    }

    /// The removal as a sentence.
    var sentence: String {
        switch self {
        case .example(_, let label, _): "Deleted an example of “\(label)”."
        case .class(let part, _):
            switch part.examples.count {
            case 0: "Deleted the class “\(part.label)”."
            case 1: "Deleted the class “\(part.label)” and its example."
            default: "Deleted the class “\(part.label)” and its \(part.examples.count) examples."
            }
        case .move(_, let source, _, let target): "Moved an example from “\(source)” to “\(target)”."
        }
    }

    /// Returns the removal after a class was renamed.
    func renaming(_ label: String, to name: String) -> ExampleRemoval {
        func renamed(_ one: String) -> String { one == label ? name : one }
        return switch self {
        case .example(let example, let label, let index): .example(example, label: renamed(label), index: index)
        case .class: self
        case .move(let id, let source, let index, let target):
            .move(id: id, from: renamed(source), index: index, to: renamed(target))
        }
    }
}

/// The latest removals, which the user can undo in reverse order.
struct ExampleUndo: Sendable {
    /// The time for which a removal can be undone.
    static let duration = Duration.seconds(600)
    /// The maximum number of removals.
    static let limit = 50

    private var removals: [(removal: ExampleRemoval, date: ContinuousClock.Instant)] = []

    /// The next removal to undo; nil without one.
    var last: ExampleRemoval? { removals.last?.removal }

    /// Adds a removal, and forgets the oldest ones if there are too many or if they need more memory than all examples may take.
    mutating func add(_ removal: ExampleRemoval, at date: ContinuousClock.Instant = .now) {
        removals.append((removal, date))
        while removals.count > Self.limit
            || removals.reduce(0, { $0 + $1.removal.byteCount }) > Examples.byteLimit
        { removals.removeFirst() }
    }

    mutating func removeLast() { removals.removeLast() }

    mutating func removeAll() { removals = [] }

    /// Forgets expired removals.
    mutating func removeExpired(at now: ContinuousClock.Instant = .now) {
        removals.removeAll { $0.date + Self.duration <= now }
    }

    /// Renames a class in the removals since it was added; earlier ones are about a deleted class of the same name.
    mutating func rename(_ label: String, to name: String) {
        for index in removals.indices.reversed() {
            if case .class(let part, _) = removals[index].removal, part.label == label { return }
            removals[index].removal = removals[index].removal.renaming(label, to: name)
        }
    }
}

extension Examples {
    /// Deletes an example.
    mutating func remove(_ id: Int) throws {
        let (classIndex, index) = try position(of: id)
        let example = classes[classIndex].examples.remove(at: index)
        undo.add(.example(example, label: classes[classIndex].label, index: index))
    }

    /// Deletes a class with its examples.
    mutating func remove(_ label: String) throws {
        let index = try index(of: label)
        undo.add(.class(classes.remove(at: index), index: index))
    }

    /// Moves an example to the end of another class, unless that class has the same photo.
    mutating func move(_ id: Int, to label: String) throws {
        let (classIndex, index) = try position(of: id)
        let target = try self.index(of: label)
        guard target != classIndex else { return }
        let example = classes[classIndex].examples[index]
        guard !classes[target].examples.contains(where: { $0.photo == example.photo }) else {
            throw RequestError(
                "The photo is already an example of \"\(label)\", and a copy teaches nothing new. Delete it instead.",
                .conflict)
        }
        classes[classIndex].examples.remove(at: index)
        classes[target].examples.append(example)
        undo.add(.move(id: id, from: classes[classIndex].label, index: index, to: label))
    }

    /// Undoes the latest removal.
    mutating func undoRemoval() throws {
        undo.removeExpired()
        guard let removal = undo.last else {
            throw RequestError(
                "There is nothing to undo. The studio keeps removed examples for 10 minutes, or until the next training.",
                .notFound)
        }
        guard byteCount + removal.byteCount <= Self.byteLimit else {
            throw RequestError(
                "The removed examples do not fit: all examples may take at most \(Self.byteLimit >> 20) MB. "
                    + "Delete newer examples first.", .payloadTooLarge)
        }
        switch removal {
        case .example(let example, let label, let index): try insert([example], into: label, at: index)
        case .class(let part, let index):
            if classes.contains(where: { $0.label == part.label }) {
                // A class with this name was added meanwhile.
                try insert(part.examples, into: part.label, at: 0)
            } else {
                guard classes.count < Self.classLimit else { throw Self.tooManyClasses }
                classes.insert(part, at: min(index, classes.count))
            }
        case .move(let id, let source, let index, _):
            // The class of the example may have been deleted for longer than this removal can be undone.
            let current = try position(of: id)
            _ = try self.index(of: source)
            try insert([classes[current.classIndex].examples.remove(at: current.index)], into: source, at: index)
        }
        undo.removeLast()
    }

    private mutating func insert(_ examples: [Example], into label: String, at index: Int) throws {
        let classIndex = try self.index(of: label)
        // A photo may have been added again since its deletion.
        let present = Set(classes[classIndex].photos)
        classes[classIndex].examples.insert(
            contentsOf: examples.filter { !present.contains($0.photo) },
            at: min(index, classes[classIndex].examples.count))
    }

    /// Changes the name of a class.
    /// - Parameter known: The labels of the model, whose names need no check.
    mutating func rename(_ label: String, to name: String, known: [String]) throws {
        let index = try index(of: label)
        guard name != label else { return }
        guard !classes.contains(where: { $0.label == name }) else {
            throw RequestError("There is already a class \"\(name)\". Choose another name.", .conflict)
        }
        if !known.contains(name) { try Self.check(name: name) }
        classes[index] = Class(label: name, examples: classes[index].examples)
        undo.rename(label, to: name)
    }
}
