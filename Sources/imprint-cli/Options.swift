public import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
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

/// Checks that a number lies in its range.
func require<Value: Comparable>(_ value: Value, _ option: String, in range: ClosedRange<Value>) throws {
    guard range.contains(value) else {
        throw ValidationError("\(option) is \(value), expected \(range.lowerBound) to \(range.upperBound).")
    }
}

/// Checks that no path is empty, as that of a variable that is not set; it would mean the current folder.
func requirePaths(_ paths: [String]) throws {
    if paths.contains("") { throw ValidationError("A path is empty, expected the name of a file or folder.") }
}

extension CropAndScale: ExpressibleByArgument {}

/// The words of --augment, as they were typed.
struct AugmentationWords: ExpressibleByArgument {
    private let words: String

    init(_ words: String) { self.words = words }
    init?(argument: String) { words = argument }

    var defaultValueDescription: String { words }

    func augmentation() throws -> Augmentation {
        do {
            return try Augmentation(named: words)
        } catch {
            throw ValidationError("--augment: \(error)")
        }
    }

    static func help(_ purpose: String) -> ArgumentHelp {
        let known = Augmentation.words.joined(separator: ", ")
        return ArgumentHelp("\(purpose): words of \(known), with commas between; or none.", valueName: "words")
    }
}

/// A number of bytes: "512" and "512MB" for so many times 2²⁰, "2GB" or "1.5 GB" for 2³⁰.
struct MemorySize: ExpressibleByArgument {
    let byteCount: Int

    init?(argument: String) {
        let number = argument.prefix { $0.isNumber || $0 == "." }
        let unit = argument.dropFirst(number.count).trimmingCharacters(in: .whitespaces).uppercased()
        let units = ["": 1 << 20, "MB": 1 << 20, "GB": 1 << 30]
        // A petabyte and more is a slip.
        guard let factor = units[unit], let size = Double(number), size < 1e6 else { return nil }
        byteCount = Int(size * Double(factor))
    }
}
