import Foundation
import TestSupport
import Testing

/// Model files that another program changes while a process uses them.
@Suite struct TruncatedModelTests {
    enum Change: CaseIterable { case truncated, emptied, overwritten }

    @Test("A process that has copied a model does not depend on its file", arguments: Change.allCases)
    func changed(_ change: Change) async throws {
        // Larger than a memory page, so that truncated pages are missing.
        let model = try TestModel(seed: 1, width: 2000)
        let expected = try #require(model.answer.first?.label)
        try await model.inFile { file in
            let process = Process()
            let (input, output) = (Pipe(), Pipe())
            process.executableURL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(
                path: "ModelReader")
            process.arguments = [file.path]
            (process.standardInput, process.standardOutput) = (input, output)
            try withoutBlockedSignals { try process.run() }
            #expect(try output.fileHandleForReading.read(upToCount: 6) == Data("ready\n".utf8))
            let handle = try FileHandle(forWritingTo: file)
            switch change {
            case .truncated: try handle.truncate(atOffset: UInt64(model.bytes.count / 2))
            case .emptied: try handle.truncate(atOffset: 0)
            case .overwritten: try handle.write(contentsOf: Data(count: model.bytes.count))
            }
            try handle.close()
            try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
            let labels = try output.fileHandleForReading.readToEnd().map { String(decoding: $0, as: UTF8.self) }
            process.waitUntilExit()
            #expect(process.terminationReason == .exit && process.terminationStatus == 0)
            #expect(labels == "\(expected)\n\(expected)\n")
        }
    }
}
