import Foundation
import TestSupport
import Testing

@testable import ImprintStore

/// The index file of a store is checked completely, and a damaged one is kept.
@Suite struct StoreIndexTests {
    private static let digest = String(repeating: "a", count: 64)
    private static let key = String(repeating: "b", count: 64)
    /// The highest version of a model file.
    private static let highest = 9_007_199_254_740_991

    /// Returns the JSON of an index.
    private static func json(
        format: String = "1", byteCount: String = "1", version: String = "2", previous: String = "null",
        newest: String = #"{"\#(key)":{"version":2,"sha256":"\#(digest)"}}"#
    ) -> String {
        """
        {"format":\(format),"current":{"sha256":"\(digest)","byteCount":\(byteCount),"source":"file:///m","publicKey":"AAAA",
        "version":\(version),"date":"2026-01-02T03:04:05Z"},"previous":\(previous),"newestVersions":\(newest)}
        """
    }

    private static func newest(_ version: String, key: String = key, sha256: String = digest) -> String {
        #"{"\#(key)":{"version":\#(version),"sha256":"\#(sha256)"}}"#
    }

    private func index(_ text: String) throws -> StoreIndex? {
        let files = MemoryFiles()
        try files.append(Data(text.utf8), to: StoreIndex.fileName)
        return try StoreIndex(in: files)
    }

    @Test(
        "An index of a store is read",
        arguments: [
            json(), json(version: "null"), json(version: "\(highest)", newest: newest("\(highest)")),
            json(newest: "null"),
            json(newest: "{}"),
        ])
    func valid(text: String) throws { #expect(try index(text)?.current.sha256 == Self.digest) }

    private static let numbers = [
        "0", "-1", "\(highest + 1)", "\(Int.max)", "\(Int.min)", "9223372036854775808", "18446744073709551616",
        "-9223372036854775809", "1e300", "1e999", "1.5", "true", "\"2\"", "[2]",
    ]

    /// Indices with an invalid value.
    private static let invalid =
        numbers.flatMap { [json(version: $0), json(newest: newest($0))] }
        + numbers.filter { !["0", "9007199254740992", "\(Int.max)"].contains($0) }.map { json(byteCount: $0) } + [
            "", "null", "[]", "{}", "{", json() + "}", json(format: "0"), json(format: "-1"), json(format: "1e99"),
            json(newest: "[]"),
            json(newest: newest("null")), json(newest: newest("2", key: "../" + key.dropFirst(3))),
            json(newest: newest("2", key: "")), json(newest: newest("2", sha256: "../x")),
            json(newest: newest("2", sha256: digest.uppercased())),
            json(previous: #"{"sha256":"../x","byteCount":1,"source":"","date":"2026-01-02T03:04:05Z"}"#),
            json(previous: #"{"sha256":"\#(digest)","byteCount":-1,"source":"","date":"2026-01-02T03:04:05Z"}"#),
            json().replacing("2026-01-02T03:04:05Z", with: "2026-13-99T99:99:99Z"),
            json().replacing(digest, with: "\u{301}" + digest.dropFirst()),
        ]

    @Test("An index with an invalid value is damaged", arguments: invalid)
    func damaged(text: String) {
        #expect(throws: StoreError.damagedIndex(file: "memory/models.json")) { try index(text) }
    }

    @Test("A deeply nested index is damaged", arguments: ["", #"{"format":1,"current":"#, #"{"format":1,"x":"#])
    func nested(prefix: String) {
        let text = prefix + String(repeating: "[", count: 200_000)
        #expect(throws: StoreError.damagedIndex(file: "memory/models.json")) { try index(text) }
    }

    @Test("A newer format is an error, also if it is the highest number", arguments: [2, 99, Int.max])
    func newer(format: Int) {
        #expect(throws: StoreError.newerIndex(file: "memory/models.json", found: format, newest: 1)) {
            try index(Self.json(format: "\(format)"))
        }
    }

    @Test("An index with repeated keys has one of the values") func repeatedKeys() throws {
        let first = #""\#(Self.key)":{"version":2,"sha256":"\#(Self.digest)"}"#
        for (version, isValid) in [("3", true), ("-3", false), ("\(Int.max)", false)] {
            let second = first.replacing(":2,", with: ":\(version),")
            for pair in ["{\(first),\(second)}", "{\(second),\(first)}"] {
                do {
                    #expect(try index(Self.json(newest: pair))?.current.version == 2)
                } catch {
                    #expect(!isValid && error as? StoreError == .damagedIndex(file: "memory/models.json"))
                }
            }
        }
    }

    @Test("An index that is too large is damaged, and is not read") func large() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: StoreIndex.fileName)
            try Data().write(to: file)
            #expect(truncate(file.path, off_t(StoreIndex.maximumByteCount + 1)) == 0)
            #expect(throws: StoreError.damagedIndex(file: file.path)) { try ModelStore(at: folder).current }
        }
    }

    @Test("A damaged index keeps the versions of all keys: nothing is overwritten until it is restored")
    func replay() async throws {
        let models = try [3, 2, 4].enumerated().map { try TestModel(seed: 30 + $0, version: $1) }
        let keys = try KeyPair()
        func install(_ model: TestModel, into store: ModelStore) async throws {
            try await model.inFile { file in
                let signature = try ModelSignature(signing: file, with: keys.signing).bytes
                let verification = try Verification(modelSignature: .bytes(signature), key: keys.verification)
                _ = try await store.install(from: file, verification: verification)
            }
        }
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            try await install(models[0], into: store)
            let file = folder.appending(path: StoreIndex.fileName)
            let intact = try Data(contentsOf: file)
            var damaged = intact
            damaged[0] = 0
            for bytes in [damaged, intact.dropLast(20), Data()] {
                try bytes.write(to: file)
                for model in models {
                    await #expect(throws: StoreError.damagedIndex(file: file.path)) {
                        try await install(model, into: store)
                    }
                }
                #expect(try Data(contentsOf: file) == bytes)
                #expect(try modelFiles(in: folder) == [models[0].sha256 + ".imprint"])
            }
            try intact.write(to: file)
            let error = await #expect(throws: StoreError.self) { try await install(models[1], into: store) }
            guard case .outdated(_, 2, 4)? = error else { throw try #require(error) }
            try await install(models[2], into: store)
            #expect(try store.current?.version == 4)
        }
    }

    @Test("A signer whose highest version is used up can only install the same file again") func highestVersion()
        async throws
    {
        let newest = StoreIndex.Newest(version: Self.highest, sha256: Self.digest)
        let model = InstalledModel(
            sha256: Self.key, byteCount: 1, source: "x", publicKey: Data([1]), version: Self.highest, date: Date())
        #expect(throws: StoreError.outdated(url: "x", found: Self.highest, expected: Self.highest + 1)) {
            try AcceptedVersions.increasing().check(model, newest: newest)
        }
        #expect(throws: StoreError.outdated(url: "x", found: Self.highest, expected: .max)) {
            try AcceptedVersions.increasing(from: .max).check(model, newest: nil)
        }
    }
}
