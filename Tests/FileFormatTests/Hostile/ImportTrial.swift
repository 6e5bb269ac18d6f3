import CHeapMeter
import Foundation
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// The result of one import, with the time and memory that it took.
struct ImportTrial {
    /// The memory that an import may use beyond twice its weights as 32-bit values.
    ///
    /// A few bytes of a file may describe many permuted channels and node names.
    static let allowance = 24 << 20

    /// The error; nil if the import succeeded.
    let error: (any Error)?
    /// The peak memory in bytes; nil if it is not measured.
    let peak: Int?
    /// The processor time of this thread in seconds.
    let seconds: Double

    /// Imports a file.
    init(_ url: URL, _ importer: ModelImporter = ModelImporter()) {
        self.init { _ = try importer.read(url) }
    }

    /// Measures a function that reads a file.
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

    /// Checks that the error is of a known type, and that time and memory are within their limits.
    /// - Parameter bytes: The size of the weights as 32-bit values.
    func check(weights bytes: Int, _ name: @autoclosure () -> String, sourceLocation: SourceLocation = #_sourceLocation)
    {
        switch error {
        case nil, is ImportError, is FileError, is ModelFileError, is SafetensorsError: break
        case let other?: Issue.record("\(name()): \(type(of: other)) \(other)", sourceLocation: sourceLocation)
        }
        if let peak, peak > 2 * bytes + Self.allowance {
            Issue.record("\(name()): \(peak) bytes for weights of \(bytes)", sourceLocation: sourceLocation)
        }
        // Memory is not measured with a sanitizer, which also takes more time.
        if seconds > (peak == nil ? 20 : 2) { Issue.record("\(name()): \(seconds) s", sourceLocation: sourceLocation) }
    }
}

/// An invalid file, and the expected error.
struct HostileModel: CustomTestStringConvertible, Sendable {
    /// The kinds of errors.
    enum Kind: Sendable {
        case unknownFormat, malformed, exceedsLimit, unsuitableModel, unsupported, network, missing, unreadable
    }

    let testDescription: String
    let kind: Kind
    /// A part of the error message.
    let message: String
    /// Writes the files to a folder, and returns the model file and its importer.
    let make: @Sendable (_ folder: URL) throws -> (URL, ModelImporter)

    init(
        _ name: String, _ kind: Kind, _ message: String,
        make: @escaping @Sendable (_ folder: URL) throws -> (URL, ModelImporter)
    ) {
        (testDescription, self.kind, self.message, self.make) = (name, kind, message, make)
    }

    /// Creates a model of a single file.
    init(_ name: String, _ kind: Kind, _ message: String, bytes: @escaping @Sendable () -> [UInt8]) {
        self.init(name, kind, message) { folder in
            let url = folder.appending(path: "model")
            try Data(bytes()).write(to: url)
            return (url, ModelImporter())
        }
    }

    /// Imports the file and checks the error.
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
                Issue.record("\(testDescription): the import succeeded")
                return
            }
            #expect(Self.kind(of: error) == kind, "\(error)")
            #expect("\(error)".contains(message), "\(error)")
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
        case .missing, .inputSize, .sideMultiple: .missing
        case .outOfMemory, nil: error is FileError ? .unreadable : nil
        }
    }
}
