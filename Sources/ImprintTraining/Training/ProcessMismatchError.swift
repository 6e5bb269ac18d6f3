internal import Foundation
internal import ImprintCore
internal import ImprintModel

/// The error of processes that would not train the same model.
package struct ProcessMismatchError: Error, CustomStringConvertible {
    /// The index of the process that differs from the first one.
    package let rank: Int
    /// The properties that differ, such as "photos".
    package let property: String
    package let found: String
    package let expected: String

    package var description: String {
        "the \(property) of process \(rank) and of process 0 differ: found \"\(found)\", expected \"\(expected)\". Start all processes with the same program, options and files, on the same kind of processor."
    }
}

extension ProcessGroup {
    /// Checks that all processes have the same values of some properties.
    /// - Throws: `ProcessMismatchError` in all processes.
    func checkSame(_ properties: [(name: String, value: String)]) throws(ProcessMismatchError) {
        func strings(_ bytes: [UInt8]) -> [String] {
            bytes.split(separator: 0, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
        }
        let names = properties.map(\.name).joined(separator: ", ")
        let all = allGather(Array(([names] + properties.map(\.value)).joined(separator: "\u{0}").utf8)).map(strings)
        func check(_ index: Int, _ name: String) throws(ProcessMismatchError) {
            guard let rank = all.firstIndex(where: { $0[index] != all[0][index] }) else { return }
            throw ProcessMismatchError(rank: rank, property: name, found: all[rank][index], expected: all[0][index])
        }
        // A process with another checkpoint or base model can be at another check, with other properties.
        try check(0, "next check")
        for (index, property) in properties.enumerated() { try check(index + 1, property.name) }
    }
}

extension Checkpoint.Images {
    /// The SHA-256 of the digests and the names of the images.
    var digest: String { Self.digest(digests + ["training"] + training + ["validation"] + validation) }

    /// Returns the SHA-256 of names.
    static func digest(_ names: [String]) -> String {
        var hash = SHA256()
        for name in names { hash.update((Array(name.utf8) + [0]).span.bytes) }
        return hash.hexadecimal
    }
}
