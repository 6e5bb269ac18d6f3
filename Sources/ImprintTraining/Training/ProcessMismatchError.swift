internal import Foundation
internal import ImprintCore
internal import ImprintModel

/// The error of processes that would not train the same model.
package struct ProcessMismatchError: Error, CustomStringConvertible {
    /// A property that differs between two processes.
    package struct Difference: Sendable {
        /// The name of the property, such as "batch size" or "training photos".
        package let property: String
        /// The value in the process with the rank of the error; nil if it did not compare this property.
        package let found: String?
        /// The value in the first process; nil if it did not compare this property.
        package let expected: String?

        package init(property: String, found: String?, expected: String?) {
            (self.property, self.found, self.expected) = (property, found, expected)
        }
    }

    /// The index of the process that differs from the first one.
    package let rank: Int
    /// The properties that differ.
    package let differences: [Difference]

    package init(rank: Int, differences: [Difference]) {
        (self.rank, self.differences) = (rank, differences)
    }

    package var description: String {
        func text(_ value: String?) -> String { value.map { "\"\($0)\"" } ?? "nothing" }
        let list = differences.map { "\($0.property) (found \(text($0.found)), expected \(text($0.expected)))" }
        return "process \(rank) differs from process 0 in \(list.joined(separator: ", ")). "
            + "Start all processes with the same program, options and files, on the same kind of processor."
    }
}

extension ProcessGroup {
    /// Checks that all processes have the same values of some properties.
    ///
    /// A process with another checkpoint or base model can be at another check, with other properties, which the error also names.
    /// - Throws: `ProcessMismatchError` in all processes.
    func checkSame(_ properties: [(name: String, value: String)]) throws(ProcessMismatchError) {
        let own = properties.flatMap { [$0.name, $0.value] }.joined(separator: "\u{0}")
        let all = allGather(Array(own.utf8)).map { bytes in
            bytes.split(separator: 0, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
        }
        guard let rank = all.firstIndex(where: { $0 != all[0] }) else { return }
        func names(_ process: [String]) -> [String] {
            stride(from: 0, to: process.count - 1, by: 2).map { process[$0] }
        }
        func value(_ name: String, _ process: [String]) -> String? {
            names(process).firstIndex(of: name).map { process[2 * $0 + 1] }
        }
        let known = Set(names(all[0]))
        let differences = (names(all[0]) + names(all[rank]).filter { !known.contains($0) }).compactMap {
            name -> ProcessMismatchError.Difference? in
            let (found, expected) = (value(name, all[rank]), value(name, all[0]))
            return found == expected
                ? nil : ProcessMismatchError.Difference(property: name, found: found, expected: expected)
        }
        throw ProcessMismatchError(rank: rank, differences: differences)
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
