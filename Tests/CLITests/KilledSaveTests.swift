import Foundation
import ImprintCore
import ImprintModel
import TestSupport
import Testing

/// Personalization files whose writing process is killed.
@Suite struct KilledSaveTests {
    private static let saveLoop = tool.deletingLastPathComponent().appending(path: "SaveLoop")

    /// Returns a personalization with about 4,000 random parameters.
    private func personalization(seed: UInt64) -> Personalization {
        var stream = RandomStream(seed: seed, "personalization")
        let columns = (0..<40).map { index in
            Personalization.Column(
                label: "label \(index)", weights: (0..<100).map { _ in stream.uniform(in: -1...1) },
                bias: stream.uniform(in: -1...1))
        }
        return Personalization(
            baseDigest: SHA256.hexadecimal(of: [UInt8(seed)]), addedLabels: ["label 3"], columns: columns,
            record: Personalization.Record(examples: ["label 3": Int(seed)]))
    }

    @Test("Killing a process that repeatedly saves a personalization leaves one complete version")
    func killed() throws {
        try withTemporaryFolder { folder in
            let versions = [personalization(seed: 1), personalization(seed: 2)]
            let files = [folder.appending(path: "1.imprint"), folder.appending(path: "2.imprint")]
            for (version, file) in zip(versions, files) { try version.write(to: file) }
            let saved = folder.appending(path: "saved/me.imprint")
            var stream = RandomStream(seed: 1, "moments")
            var found = [0, 0]
            for round in 0..<100 {
                // Start with an empty folder: the existence of the file then shows that the first save is complete.
                try? FileManager.default.removeItem(at: saved.deletingLastPathComponent())
                try FileManager.default.createDirectory(
                    at: saved.deletingLastPathComponent(), withIntermediateDirectories: false)
                try killSaving(
                    versions: files, to: saved, after: files[round % 2], delay: stream.uniform(in: 0...0.05))
                let read = try Personalization(contentsOf: saved)
                let index = try #require(versions.firstIndex(of: read), "after kill \(round)")
                #expect(try Data(contentsOf: saved) == Data(contentsOf: files[index]))
                found[index] += 1
            }
            // Both versions must occur; otherwise the kills always hit the same save.
            #expect(found.allSatisfy { $0 > 0 }, "\(found)")
        }
    }

    /// Starts a process that repeatedly saves the versions, and kills it `delay` seconds after it has saved one of them.
    private func killSaving(versions: [URL], to file: URL, after version: URL, delay: Float) throws {
        let process = Process()
        process.executableURL = Self.saveLoop
        process.arguments = [file.path] + versions.map(\.path)
        try withoutBlockedSignals { try process.run() }
        let (deadline, expected) = (Date(timeIntervalSinceNow: 60), try Data(contentsOf: version))
        while (try? Data(contentsOf: file)) != expected, process.isRunning, Date() < deadline { usleep(500) }
        usleep(UInt32(delay * 1e6))
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        #expect(process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGKILL)
    }
}
