package import Foundation
package import ImprintCore

/// A PEM file (RFC 7468).
package enum PEMFile {
    /// The largest file that is read; a file of keys and certificates is much smaller.
    private static let maximumByteCount = 1 << 16

    /// The reason why a text has no usable block.
    package enum BlockError: Error {
        /// The key in the block is encrypted.
        case encrypted
        /// The block with a label, which is one of the requested ones, has no last line.
        case incomplete(label: String)
        /// There is no block with one of the labels; `found` are the labels of the blocks.
        case missing(found: [String])

        /// The reason within a sentence.
        package var reason: String {
            switch self {
            case .encrypted: "the key is encrypted. Decrypt it with openssl pkey -in FILE -out NEWFILE"
            case .incomplete(let label):
                "the block \(label.debugDescription) is incomplete: it has no END line. Copy the file again"
            case .missing(let found):
                "found \(found.isEmpty ? "no PEM block" : found.map(\.debugDescription).joined(separator: ", "))"
            }
        }
    }

    /// Returns the text of a PEM file; nil if it is too large or not UTF-8.
    /// - Throws: `FileError` if the file cannot be read.
    package static func text(of url: URL) throws(FileError) -> String? {
        try RegularFile(url.path).text(limit: maximumByteCount)
    }

    /// Returns the first block with one of `labels`, such as "PUBLIC KEY", including its first and last line.
    package static func firstBlock(in text: String, labels: [String]) throws(BlockError) -> String {
        var found: [String] = []
        var block: [Substring] = []
        var label: Substring?
        for line in text.split(whereSeparator: \.isNewline) {
            if let name = Self.label(of: line, "BEGIN") {
                (label, block) = (name, [])
                found.append(String(name.prefix(40)))
            }
            block.append(line)
            guard let current = label, Self.label(of: line, "END") == current else { continue }
            label = nil
            guard labels.contains(String(current)) || current == "ENCRYPTED PRIVATE KEY" else { continue }
            guard current != "ENCRYPTED PRIVATE KEY", !block.contains(where: { $0.contains("ENCRYPTED") }) else {
                throw .encrypted
            }
            return block.joined(separator: "\n")
        }
        // A complete block with one of the labels would have been returned.
        if let label = found.first(where: { labels.contains($0) }) { throw .incomplete(label: label) }
        throw .missing(found: found)
    }

    private static func label(of line: Substring, _ kind: String) -> Substring? {
        let start = "-----\(kind) "
        guard line.hasPrefix(start), line.hasSuffix("-----"), line.count >= start.count + 5 else { return nil }
        return line.dropFirst(start.count).dropLast(5)
    }
}

/// An elliptic curve of keys; signatures use the hash function SHA-256, SHA-384 or SHA-512.
package enum EllipticCurve: Sendable, CaseIterable {
    case p256, p384, p521

    /// The object identifier of the curve in DER (RFC 5480).
    private var identifier: [UInt8] {
        switch self {
        case .p256: [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
        case .p384: [0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x22]
        case .p521: [0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x23]
        }
    }

    /// Finds the curve that a key in PEM format names.
    ///
    /// swift-crypto reads a PKCS #8 key of any curve of 256 bits as a key on P-256.
    /// - Parameter block: The block of the key, with its first and last line.
    package init?(named block: String) {
        let lines = block.split(separator: "\n").dropFirst().dropLast()
        guard let der = Data(base64Encoded: lines.joined()),
            let curve = Self.allCases.first(where: { der.firstRange(of: Data($0.identifier)) != nil })
        else { return nil }
        self = curve
    }
}
