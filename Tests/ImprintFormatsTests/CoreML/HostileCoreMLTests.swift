import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintFormats

private let fixtures = packageFolder.appending(path: "Tests/ImprintFormatsTests/Fixtures/CoreML")

/// Files that no writer makes: each is read or refused, and never ends the process.
@Suite struct HostileCoreMLTests {
    static let names = ["network-bgr.mlmodel", "network-float16.mlmodel"]
    static let packages = ["program.mlpackage", "program-lookup4.mlpackage"]

    /// Reads a file; what is wrong with it must have a name.
    private func survive(_ url: URL) throws -> Bool {
        do {
            _ = try ModelImporter().read(url)
            return true
        } catch is ImportError {
            return false
        } catch is FileError {
            return false
        }
    }

    /// Changes some bytes, or takes a part away, repeats or moves it.
    private func mutated(_ bytes: [UInt8], _ stream: inout RandomStream) -> [UInt8] {
        var bytes = bytes
        func place() -> Int { Int(stream.next() % UInt64(max(bytes.count, 1))) }
        for _ in 0..<(1 + stream.next() % 4) {
            guard !bytes.isEmpty else { return bytes }
            switch stream.next() % 5 {
            case 0: bytes[place()] = UInt8(truncatingIfNeeded: stream.next())
            case 1: bytes[place()] ^= 1 << UInt8(stream.next() % 8)
            case 2:
                let start = place()
                bytes.removeSubrange(start..<min(start + 1 + place() % 16, bytes.count))
            case 3:
                let start = place()
                bytes.insert(contentsOf: bytes[start..<min(start + 16, bytes.count)], at: place())
            default: bytes[place()] = [0, 0x7F, 0x80, 0xFF][Int(stream.next() % 4)]
            }
        }
        return bytes
    }

    @Test("Files that are cut short are refused", arguments: names)
    func truncated(name: String) throws {
        let bytes = [UInt8](try Data(contentsOf: fixtures.appending(path: name)))
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.mlmodel")
            for count in stride(from: 0, to: bytes.count, by: 7) {
                try Data(bytes.prefix(count)).write(to: url)
                #expect(try !survive(url), "\(count) bytes")
            }
        }
    }

    @Test("Networks with changed bytes are read or refused", arguments: names)
    func mutatedNetworks(name: String) throws {
        let bytes = [UInt8](try Data(contentsOf: fixtures.appending(path: name)))
        var refused = 0
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.mlmodel")
            for turn in 0..<3000 {
                var stream = RandomStream(seed: 1, name, turn)
                try Data(mutated(bytes, &stream)).write(to: url)
                if try !survive(url) { refused += 1 }
            }
        }
        #expect(refused > 500)
    }

    @Test("Programs with changed bytes, in the model or its weights, are read or refused", arguments: packages)
    func mutatedPrograms(name: String) throws {
        let source = fixtures.appending(path: name)
        var refused = 0
        try withTemporaryFolder { folder in
            let package = folder.appending(path: "model.mlpackage")
            try FileManager.default.copyItem(at: source, to: package)
            for part in [
                "Data/com.apple.CoreML/model.mlmodel", "Data/com.apple.CoreML/weights/weight.bin", "Manifest.json",
            ] {
                let bytes = [UInt8](try Data(contentsOf: source.appending(path: part)))
                let url = package.appending(path: part)
                for turn in 0..<1000 {
                    var stream = RandomStream(seed: 2, part, turn)
                    try Data(mutated(bytes, &stream)).write(to: url)
                    if try !survive(package) { refused += 1 }
                }
                try Data(bytes).write(to: url)
            }
            #expect(try survive(package))
        }
        #expect(refused > 500)
    }

    @Test(
        "Sizes that no memory has are refused",
        arguments: [
            [.integer(1, 1 << 40), .integer(2, 1), .message(51, []), .weights(90, [1])],
            [
                .integer(1, 1 << 31 - 1), .integer(2, 1 << 31 - 1), .integers(20, [1 << 31 - 1, 1 << 31 - 1]),
                .message(51, []), .weights(90, [1]),
            ],
            [.integer(1, -1), .integer(2, 1), .message(51, []), .weights(90, [1])],
            [
                .integer(1, 1), .integer(2, 1), .integers(30, [0, 0]), .message(51, []),
                .weights(90, Array(repeating: 1, count: 9)),
            ],
            [
                .integer(1, 1), .integer(2, 1), .integers(40, [1 << 31 - 1, 1 << 31 - 1]),
                .message(51, [.integer(1, 1)]),
                .weights(90, Array(repeating: 1, count: 9)),
            ],
        ] as [[WireField]])
    func sizes(settings: [WireField]) {
        var sample = CoreMLSample()
        sample.add("conv", 100, settings)
        #expect(throws: ImportError.self) { try sample.read() }
    }

    @Test("Numbers that would be spread over, or sorted in, more places than memory has are refused")
    func spreading() {
        var biased = CoreMLSample(width: 1 << 14, height: 1 << 14)
        biased.add("bias", 250, [.integers(1, [1, 1, 1 << 14]), .weights(2, Array(repeating: 1, count: 1 << 14))])
        #expect(throws: ImportError.self) { try biased.read() }
        var flattened = CoreMLSample(width: 1 << 14, height: 1 << 14)
        flattened.add("flat", 301)
        flattened.add("softmax", 175)
        #expect(throws: ImportError.self) { try flattened.read() }
    }

    @Test("Channels that double again and again are refused")
    func doubling() {
        var sample = CoreMLSample(width: 1, height: 1)
        for turn in 0..<80 {
            sample.add("layer\(turn)", 320, from: Array(repeating: turn == 0 ? "image" : "layer\(turn - 1)", count: 2))
        }
        #expect(throws: ImportError.self) { try sample.read() }
    }
}
