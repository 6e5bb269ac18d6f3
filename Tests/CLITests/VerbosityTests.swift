import Foundation
import ImprintImages
import TestSupport
import Testing

/// The amount of messages: --quiet, the default, and --verbose.
@Suite struct VerbosityTests {
    private static let commands = [
        "draw two-circles --count 4 -o drawn",
        "train photos -o m.imprint --network lenet --input-size 16 --epochs 1",
    ]

    @Test(
        "--quiet prints neither notes nor progress; the results are the same", arguments: commands, ["-q", "--quiet"])
    func quiet(command: String, option: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let usual = try shell("\"$imprint\" \(command.replacing("-o ", with: "-o usual-"))", folder: folder)
            #expect(usual.status == 0 && !usual.errors.isEmpty)
            let quiet = try shell("\"$imprint\" \(command) \(option)", folder: folder)
            #expect(quiet.status == 0 && quiet.errors.isEmpty, "\(quiet.errors)")
            #expect(quiet.output == usual.output)
            #expect(!(try FileManager.default.contentsOfDirectory(atPath: folder.path)).isEmpty)
        }
    }

    @Test("--quiet still prints warnings and errors")
    func warnings() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            try Data("\u{FF}\u{D8}\u{FF} damaged".utf8).write(to: folder.appending(path: "photos/dark/damaged.jpg"))
            let train = try shell(
                "\"$imprint\" train photos -q -o m.imprint --network lenet --input-size 16 --epochs 1 --patience 1 --validation 0",
                folder: folder)
            #expect(train.status == 0)
            let lines = train.errors.split(separator: "\n")
            #expect(
                lines.count == 2 && lines[0].hasPrefix("Skipped: ") && lines[0].contains("damaged.jpg"),
                "\(train.errors)")
            #expect(lines.last == "Without a validation set, --patience has no effect.")
            let classify = try shell("\"$imprint\" classify -q m.imprint missing.jpg", folder: folder)
            #expect(classify.status == 1 && classify.errors.contains("missing.jpg"))
        }
    }

    @Test("--verbose adds the version, the kernels, the time and the peak memory", arguments: ["-v", "--verbose"])
    func verbose(option: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let train = try shell(
                "\"$imprint\" train photos \(option) -o m.imprint --network lenet --input-size 16 --epochs 1",
                folder: folder)
            #expect(train.status == 0)
            let lines = train.errors.split(separator: "\n").map(String.init)
            #expect(lines.first?.hasPrefix("imprint 0.2.0, OpenBLAS ") == true)
            #expect(lines.contains("Labels: bright, dark."))
            #expect(lines.contains { $0.hasPrefix("epoch 1/1") && $0.contains("learning rate 0.") })
            #expect(lines.last?.wholeMatch(of: /Finished in [0-9.]+ s, with at most [0-9.]+ [MG]B of memory\./) != nil)
        }
    }

    @Test("--quiet and --verbose together are a usage error")
    func both() throws {
        let run = try imprint("inspect", "m.imprint", "-q", "-v")
        #expect(run.status == 64)
        #expect(run.errors.contains("Expected --quiet or --verbose, found both. Leave out one of them."))
    }
}
