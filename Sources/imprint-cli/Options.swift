public import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// What every verb understands.
struct CommonOptions: ParsableArguments {
    @Flag(help: "Print one JSON object per line to standard output; everything else goes to standard error.")
    var json = false

    @Option(help: "The number of threads; results do not depend on it. (default: one per core)")
    var threads: Int?

    var threadCount: Int { threads ?? Processors.coreCount }

    func validate() throws {
        try require(threads ?? 1, "--threads", in: 1...256)
    }
}

/// What of one person is added to a model.
struct ClassifierOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("What imprint personalize made of the model and one person's photos.", valueName: "file"))
    var personalization: String?

    @Flag(
        help:
            "Look at each photo and at its mirror image, and take the mean: better for what has no left and right, in twice the time."
    )
    var mirror = false

    func validate() throws { try requirePaths([personalization].compactMap { $0 }) }

    func classifier(_ model: String, threads: Int) throws -> ImageClassifier {
        let base = try ImageClassifier(
            contentsOf: URL(filePath: model), threads: threads, averagesMirrored: mirror)
        return try base.personalized(
            with: try personalization.map { try Personalization(contentsOf: URL(filePath: $0)) })
    }
}

/// Checks that a number lies in its range.
func require<Value: Comparable>(_ value: Value, _ option: String, in range: ClosedRange<Value>) throws {
    guard range.contains(value) else {
        throw ValidationError("\(option) is \(value), expected \(range.lowerBound) to \(range.upperBound).")
    }
}

/// Reads a random seed.
func seedNumber(_ text: String) throws -> UInt64 {
    guard let seed = UInt64(text) else {
        throw ValidationError("expected a whole number from 0 to \(UInt64.max).")
    }
    return seed
}

/// Checks that no path is empty, as that of a variable that is not set; it would mean the current folder.
func requirePaths(_ paths: [String]) throws {
    if paths.contains("") { throw ValidationError("A path is empty, expected the name of a file or folder.") }
}

/// Checks that a folder which is written to lies in none of those that are read.
func requireOutside(_ path: String, _ option: String, of folders: [URL?]) throws {
    let inside = URL(filePath: path).resolvingSymlinksInPath().standardizedFileURL.pathComponents
    for folder in folders.compactMap({ $0 })
    where inside.starts(with: folder.resolvingSymlinksInPath().standardizedFileURL.pathComponents) {
        throw ValidationError(
            "\(option) is \(path), within the photos of \(folder.path(percentEncoded: false)), where it would become a label; "
                + "choose a folder elsewhere.")
    }
}

/// A word as a shell reads it back.
func shellQuoted(_ word: String) -> String {
    let plain = word.unicodeScalars.allSatisfy {
        $0.properties.isAlphabetic || ("0"..."9").contains($0) || "-_./,=:+%@".unicodeScalars.contains($0)
    }
    return plain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
}

extension CropAndScale: ExpressibleByArgument {}

/// The words of --augment, as they were typed.
struct AugmentationWords: ExpressibleByArgument, CustomStringConvertible {
    private let words: String

    init(_ words: String) { self.words = words }
    init?(argument: String) { words = argument }

    /// The words as they were typed.
    var description: String { words }

    func augmentation() throws -> Augmentation {
        do {
            return try Augmentation(named: words)
        } catch {
            throw ValidationError("--augment: \(error)")
        }
    }

    static func help(_ purpose: String) -> ArgumentHelp {
        let known = Augmentation.allNames.joined(separator: ", ")
        return ArgumentHelp("\(purpose): words of \(known), with commas between; or none.", valueName: "words")
    }
}

/// A number of bytes as it was typed: "512" and "512MB" for so many times 2²⁰, "2GB" or "1.5 GB" for 2³⁰.
struct MemorySize: ExpressibleByArgument {
    private let text: String

    init?(argument: String) { text = argument }

    func byteCount() throws -> Int {
        let number = text.prefix { $0.isNumber || $0 == "." }
        let unit = text.dropFirst(number.count).trimmingCharacters(in: .whitespaces).uppercased()
        let units = ["": 1 << 20, "MB": 1 << 20, "GB": 1 << 30]
        // A petabyte and more is a slip.
        guard let factor = units[unit], let size = Double(number), size < 1e6 else {
            throw ValidationError("--memory is \(text), expected a number of MB, or a size such as 500MB or 2GB.")
        }
        return Int(size * Double(factor))
    }
}
