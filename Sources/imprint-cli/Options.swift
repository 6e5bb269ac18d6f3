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
