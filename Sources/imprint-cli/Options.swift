public import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The options of every subcommand.
struct CommonOptions: ParsableArguments {
    @Flag(help: "Print one JSON object per line to standard output; everything else goes to standard error.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print only results, warnings and errors, without progress and notes.")
    var quiet = false

    @Flag(name: .shortAndLong, help: "Also print details: the processor's kernels, the time, and the peak memory.")
    var verbose = false

    @Option(help: "The number of threads; results do not depend on it. (default: one per core)")
    var threads: Int?

    var threadCount: Int { threads ?? Processors.coreCount }

    func validate() throws {
        try require(threads ?? 1, "--threads", in: Processors.threadRange)
        guard !(quiet && verbose) else {
            throw ValidationError("Expected --quiet or --verbose, found both. Leave out one of them.")
        }
        Terminal.verbosity = quiet ? .quiet : verbose ? .verbose : .normal
    }
}

/// The precision of predictions.
struct PrecisionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The precision in which Imprint computes predictions; the model file does not change: float32; bfloat16, which is faster for most "
                + "networks on processors with AVX512-BF16 or BFDOT (arm64), and changes confidences slightly; or int8 for a model from imprint quantize. "
                + "(default: int8 for such a model, otherwise float32)"))
    var precision: ChosenPrecision?

    /// The choices, without `automatic`.
    enum ChosenPrecision: String, CaseIterable, ExpressibleByArgument {
        case float32, bfloat16, int8
    }

    /// Returns the precision, after a warning if this processor has no instructions for it.
    func checked() -> Precision { Self.checked(precision) }

    /// Warns if a quantized model computes in int8 on a processor without instructions for it.
    static func warnIfSlow(_ classifier: ImageClassifier) {
        if classifier.precision == .int8, !Precision.int8.isFast {
            Terminal.warn("This processor has no fast instructions for int8, so --precision float32 may be faster.")
        }
    }

    /// Warns if this processor has no instructions for a precision.
    static func warnIfSlow(_ precision: Precision) {
        guard !precision.isFast else { return }
        Terminal.warn("This processor has no fast instructions for \(precision.rawValue), so float32 may be faster.")
    }

    /// Returns a precision, after a warning if this processor has no instructions for it.
    static func checked(_ chosen: ChosenPrecision?) -> Precision {
        let precision = Precision(rawValue: chosen?.rawValue ?? "") ?? .automatic
        if precision != .int8 { warnIfSlow(precision) }
        return precision
    }
}

/// The options of subcommands that run a model: its personalization and test-time augmentation.
struct ClassifierOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("A personalization of the model, from imprint personalize.", valueName: "file"))
    var personalization: String?

    @Flag(
        help:
            "Average the predictions of each photo and its mirror image (test-time augmentation); takes twice the time."
    )
    var mirror = false

    @OptionGroup var precisionOptions: PrecisionOptions

    func validate() throws { try requirePaths([personalization].compactMap { $0 }) }

    /// Returns the classifier of a model.
    func classifier(_ model: String, threads: Int) throws -> ImageClassifier {
        let file = try namedModel(model)
        if mirror, file.head.locatesObjects {
            throw ValidationError(
                "--mirror: \(model): the model is a detector, expected a classifier, whose confidences --mirror averages. Leave out --mirror."
            )
        }
        let precision = precisionOptions.checked()
        let base = try naming(model) {
            try ImageClassifier(file, threads: threads, averagesFlipped: mirror, precision: precision)
        }
        PrecisionOptions.warnIfSlow(base)
        return try base.personalized(
            with: try personalization.map(namedPersonalization))
    }
}

/// Checks that a model is a detector.
/// - Parameters:
///   - path: The model file.
///   - alternative: The advice for a user who has a classifier.
func requireDetector(_ classifier: ImageClassifier, _ path: String, otherwise alternative: String) throws {
    guard classifier.model.head.locatesObjects else {
        throw ValidationError(
            "\(path): the model classifies whole photos and has no boxes, expected a detector. Train one with "
                + "imprint train-detector, or \(alternative).")
    }
}

/// Checks that a value is in its range.
func require<Value: Comparable>(_ value: Value, _ option: String, in range: ClosedRange<Value>) throws {
    guard range.contains(value) else {
        let (found, lowest, highest) = (
            messageText(value), messageText(range.lowerBound), messageText(range.upperBound)
        )
        throw ValidationError("\(option) is \(found), expected \(lowest) to \(highest).")
    }
}

/// Parses a random seed.
func seedNumber(_ text: String) throws -> UInt64 {
    guard let seed = UInt64(text) else {
        throw ValidationError("expected a whole number from 0 to \(UInt64.max).")
    }
    return seed
}

/// Checks that no path is empty, for example because of an unset shell variable; an empty path would mean the current folder.
/// - Parameters:
///   - paths: The paths.
///   - allowsURLs: Whether URLs are also valid; otherwise, they are rejected.
///   - areOutputs: Whether the command writes to the paths, which changes the advice; see `requireOutputPath`.
func requirePaths(_ paths: [String], allowsURLs: Bool = false, areOutputs: Bool = false) throws {
    if paths.contains("") { throw ValidationError("A path is empty, expected a file or folder name.") }
    guard !allowsURLs else { return }
    for path in paths {
        if let problem = urlProblem(path, isOutput: areOutputs) { throw ValidationError("\(shown(path)) \(problem)") }
    }
}

/// Checks the path of an output: it must not be empty, a URL or "-", which other programs take for standard output.
func requireOutputPath(_ path: String, _ option: String) throws {
    try requirePaths([path], areOutputs: true)
    guard path != "-" else {
        throw ValidationError(
            "\(option): Imprint does not write this output to standard output (-). Name a file or folder; ./- is one with this name."
        )
    }
}

/// Returns the problem of a URL instead of a path, as the end of a sentence and with the fix; nil for the path of a file.
/// - Parameters:
///   - text: A text that may be a URL with a scheme, such as https://example.org/photo.jpg.
///   - isOutput: Whether the command writes to the path.
func urlProblem(_ text: String, isOutput: Bool = false) -> String? {
    guard isURL(text), !FileManager.default.fileExists(atPath: text) else { return nil }
    let fix =
        if text.lowercased().hasPrefix("file:"), let path = URL(string: text)?.path(percentEncoded: false),
            !path.isEmpty
        {
            "Write \(visible(path)) instead."
        } else if isOutput {
            "Imprint reads and writes only local files. Write a local file, and upload it afterwards."
        } else {
            "Imprint reads and writes only local files. Download a remote file first."
        }
    return "is a URL, expected a path. \(fix)"
}

/// Checks that an output folder is not inside a folder of photos.
func requireOutside(_ path: String, _ option: String, of folders: [URL?]) throws {
    for folder in folders.compactMap({ $0 }) where URL(filePath: path).isInside(folder) {
        throw ValidationError(
            "\(option) is \(path), within the photos of \(folder.path(percentEncoded: false)), where it would become a label; "
                + "choose another folder.")
    }
}

/// Returns a word quoted for the shell, if it has special characters.
func shellQuoted(_ word: String) -> String {
    let plain = word.unicodeScalars.allSatisfy {
        $0.properties.isAlphabetic || ("0"..."9").contains($0) || "-_./,=:+%@".unicodeScalars.contains($0)
    }
    if plain && !word.isEmpty { return word }
    let escaped = word.replacingScalars { $0 == "'" ? "'\\''" : nil }
    return "'\(escaped)'"
}

extension CropAndScale: ExpressibleByArgument {}

/// The value of --augment, as it was typed.
struct AugmentationList: ExpressibleByArgument, CustomStringConvertible {
    private let names: String

    init(_ names: String) { self.names = names }
    init?(argument: String) { names = argument }

    /// The names as they were typed.
    var description: String { names }

    func augmentation() throws -> Augmentation {
        do {
            return try Augmentation(named: names)
        } catch {
            throw ValidationError("--augment: \(error)")
        }
    }

    static func help(_ purpose: String, note: String? = nil) -> ArgumentHelp {
        let known = Augmentation.allNames.joined(separator: ", ")
        return ArgumentHelp(
            "\(purpose): a comma-separated list of \(known); or none.\(note.map { " \($0)" } ?? "")", valueName: "list")
    }
}

/// A memory size as it was typed: a number of MB (2²⁰ bytes) such as "512" or "512MB", or of GB (2³⁰ bytes) such as "1.5 GB".
struct MemorySize: ExpressibleByArgument {
    private let text: String

    init?(argument: String) { text = argument }

    func byteCount() throws -> Int {
        let number = text.prefix { $0.isNumber || $0 == "." }
        let unit = text.dropFirst(number.count).trimmingCharacters(in: .whitespaces).uppercased()
        let units = ["": 1 << 20, "MB": 1 << 20, "GB": 1 << 30]
        // A size of about a petabyte or more is a typing error.
        guard let factor = units[unit], let size = Double(number), size < 1e6 else {
            throw ValidationError("--memory is \(text), expected a number of MB, or a size such as 500MB or 2GB.")
        }
        return Int(size * Double(factor))
    }
}
