import Foundation
import ImprintCore
import ImprintModel
import TestSupport
import Testing

/// What is left of a personalization where the process that saves it is killed.
@Suite struct KilledSaveTests {
    private static let saveLoop = tool.deletingLastPathComponent().appending(path: "SaveLoop")

    /// A personalization of 4,000 numbers, which differ from seed to seed.
    private func personalization(seed: UInt64) -> Personalization {
        var stream = RandomStream(seed: seed, "personalization")
        let columns = (0..<40).map { place in
            Personalization.Column(
                label: "label \(place)", weights: (0..<100).map { _ in stream.uniform(in: -1...1) },
                bias: stream.uniform(in: -1...1))
        }
        return Personalization(
            base: SHA256.hexadecimal(of: [UInt8(seed)]), addedLabels: ["label 3"], columns: columns,
            record: Personalization.Record(examples: ["label 3": Int(seed)]))
    }

    @Test("Whenever a process is killed that saves over and over, the file is one of those it wrote, whole")
    func killed() throws {
        try withTemporaryFolder { folder in
            let versions = [personalization(seed: 1), personalization(seed: 2)]
            let files = [folder.appending(path: "1.imprint"), folder.appending(path: "2.imprint")]
            for (version, file) in zip(versions, files) { try version.write(to: file) }
            let saved = folder.appending(path: "saved/me.imprint")
            var stream = RandomStream(seed: 1, "moments")
            var found = [0, 0]
            for round in 0..<100 {
                // A new folder for each, so that the first save can be told.
                try? FileManager.default.removeItem(at: saved.deletingLastPathComponent())
                try FileManager.default.createDirectory(
                    at: saved.deletingLastPathComponent(), withIntermediateDirectories: false)
                try killSaving(versions: files, to: saved, after: stream.uniform(in: 0...0.05))
                let read = try Personalization(contentsOf: saved)
                let place = try #require(versions.firstIndex(of: read), "after kill \(round)")
                #expect(try Data(contentsOf: saved) == Data(contentsOf: files[place]))
                found[place] += 1
            }
            // Kills that all came before the second save would show nothing.
            #expect(found.allSatisfy { $0 > 0 }, "\(found)")
        }
    }

    /// Starts the saving, and kills it so many seconds after the first save.
    private func killSaving(versions: [URL], to file: URL, after seconds: Float) throws {
        let process = Process()
        process.executableURL = Self.saveLoop
        process.arguments = [file.path] + versions.map(\.path)
        try withoutBlockedSignals { try process.run() }
        let deadline = Date(timeIntervalSinceNow: 30)
        while !FileManager.default.fileExists(atPath: file.path), process.isRunning, Date() < deadline { usleep(500) }
        usleep(UInt32(seconds * 1e6))
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        #expect(process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGKILL)
    }
}
