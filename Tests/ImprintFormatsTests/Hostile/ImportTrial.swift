import CHeapMeter
import Foundation
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// What became of one import: whether there is a model, and what it took.
struct ImportTrial {
    /// What an import may take beside twice its weights as 32-bit numbers: the orders of axes and the names of a network, of which a few bytes of
    /// a file may ask for many.
    static let allowance = 24 << 20

    /// Why there is no model; nil if there is one.
    let error: (any Error)?
    /// The most bytes in use at once; nil if nothing counts them.
    let peak: Int?
    /// How long this thread was at work, whatever else the machine does.
    let seconds: Double

    /// Reads a file.
    init(_ url: URL, _ importer: ModelImporter = ModelImporter()) {
        self.init { _ = try importer.read(url) }
    }

    /// Does what reads a file.
    init(reading: () throws -> Void) {
        var error: (any Error)?
        let start = Self.processorSeconds
        heap_meter_start()
        do { try reading() } catch let found { error = found }
        let peak = heap_meter_stop()
        seconds = Self.processorSeconds - start
        self.error = error
        self.peak = peak < 0 ? nil : Int(peak)
    }

    private static var processorSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
    }

    /// Checks that what went wrong has a name, in little time and memory.
    /// - Parameter bytes: How many bytes the weights have as 32-bit numbers.
    func check(weights bytes: Int, _ name: @autoclosure () -> String, sourceLocation: SourceLocation = #_sourceLocation)
    {
        switch error {
        case nil, is ImportError, is FileError, is ModelFileError, is SafetensorsError: break
        case let other?: Issue.record("\(name()): \(type(of: other)) \(other)", sourceLocation: sourceLocation)
        }
        if let peak, peak > 2 * bytes + Self.allowance {
            Issue.record("\(name()): \(peak) bytes for weights of \(bytes)", sourceLocation: sourceLocation)
        }
        // A sanitizer, with which nothing counts the memory, takes its own time.
        if seconds > (peak == nil ? 20 : 2) { Issue.record("\(name()): \(seconds) s", sourceLocation: sourceLocation) }
    }
}

/// A file that no writer makes, and why it must be refused.
struct HostileModel: CustomTestStringConvertible, Sendable {
    /// The kinds of errors.
    enum Kind: Sendable {
        case unknownFormat, malformed, exceedsLimit, unsuitableModel, unsupported, network, missing, unreadable
    }

    let testDescription: String
    let kind: Kind
    /// What the error has to say.
    let words: String
    /// Makes the files in a folder; gives the importer that reads the first of them.
    let make: @Sendable (_ folder: URL) throws -> (URL, ModelImporter)

    init(
        _ name: String, _ kind: Kind, _ words: String,
        make: @escaping @Sendable (_ folder: URL) throws -> (URL, ModelImporter)
    ) {
        (testDescription, self.kind, self.words, self.make) = (name, kind, words, make)
    }

    /// A file alone.
    init(_ name: String, _ kind: Kind, _ words: String, bytes: @escaping @Sendable () -> [UInt8]) {
        self.init(name, kind, words) { folder in
            let url = folder.appending(path: "model")
            try Data(bytes()).write(to: url)
            return (url, ModelImporter())
        }
    }

    /// Imports it and compares the error.
    func check() throws {
        try withTemporaryFolder { folder in
            let (url, importer) = try make(folder)
            let trial = ImportTrial(url, importer)
            let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: [.fileSizeKey])
            let size =
                (files?.compactMap { ($0 as? URL).flatMap { try? $0.resourceValues(forKeys: [.fileSizeKey]).fileSize } }
                ?? [])
                .reduce(0, +)
            trial.check(weights: size, testDescription)
            guard let error = trial.error else {
                Issue.record("\(testDescription): it was read")
                return
            }
            #expect(Self.kind(of: error) == kind, "\(error)")
            #expect("\(error)".contains(words), "\(error)")
            #expect("\(error)".hasPrefix(folder.path), "\(error)")
        }
    }

    private static func kind(of error: any Error) -> Kind? {
        switch (error as? ImportError)?.problem {
        case .unknownFormat: .unknownFormat
        case .malformed: .malformed
        case .exceedsLimit: .exceedsLimit
        case .unsuitableModel: .unsuitableModel
        case .unsupported: .unsupported
        case .network: .network
        case .missing, .inputSize: .missing
        case .outOfMemory, nil: error is FileError ? .unreadable : nil
        }
    }
}
