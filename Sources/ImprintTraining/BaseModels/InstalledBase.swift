public import Foundation
internal import ImprintCore
public import ImprintModel

/// An installed base model: a pretrained network to fine-tune.
public struct InstalledBase: Hashable, Sendable {
    /// The source that a base model was installed from.
    public struct Source: Hashable, Sendable, Codable {
        /// The kinds of sources.
        public enum Kind: String, Sendable, Codable {
            /// A file in a Python package, downloaded by pip.
            case pip
            /// A file on a web server.
            case https
            /// A local file.
            case file
        }

        /// The kind of source.
        public let kind: Kind
        /// The path of the file, its URL without user name, password, query and fragment, or the package and the path in it.
        public let location: String
        /// The version of the package; nil for other kinds.
        public let version: String?

        /// Describes a source.
        package init(kind: Kind, location: String, version: String? = nil) {
            self.kind = kind
            self.location = location
            self.version = version
        }
    }

    /// The name.
    public let name: String
    /// The model file.
    public let file: URL
    /// The record; nil if it is missing or invalid.
    package let record: BaseRecord?
    /// The reason why the base model cannot be used, or nil if its file matches its record; installing it again fixes it.
    public let damage: String?

    /// Reads the base model.
    /// - Throws: `BaseModelError.damaged` if its file does not match its record, and the errors of `ModelFile`.
    public func model() throws -> ModelFile {
        if let damage { throw BaseModelError.damaged(name: name, file: file.path, reason: damage) }
        return try ModelFile(contentsOf: file)
    }

    /// The SHA-256 of the model file by its record, as 64 hexadecimal digits in lower case; nil if the record is unusable.
    public var digest: String? { record?.modelSHA256 }
    /// The SHA-256 of the file that was converted to the model file; nil if the source is a folder, or the record is unusable.
    public var sourceDigest: String? { record?.sourceSHA256 }
    /// The source; nil if the record is unusable.
    public var source: Source? { record?.source }
    /// The licence as its source states it; nil if Imprint does not know it.
    public var license: String? { record?.license }
    /// Whether the user accepted the licence when installing the base model.
    public var isLicenseAccepted: Bool { record?.isLicenseAccepted ?? false }
}

/// The content of the file `NAME.json` beside the model file of a base model.
package struct BaseRecord: Hashable, Sendable, Codable {
    private static let newestFormat = 1

    private var format = newestFormat
    let name: String
    package let source: InstalledBase.Source
    /// The SHA-256 of the downloaded file; nil for a folder.
    package let sourceSHA256: String?
    /// The SHA-256 of the model file.
    package internal(set) var modelSHA256: String
    package let license: String?
    package let isLicenseAccepted: Bool

    private enum CodingKeys: String, CodingKey {
        case format, name, source, license
        case sourceSHA256 = "sourceSha256"
        case modelSHA256 = "modelSha256"
        case isLicenseAccepted = "licenseAccepted"
    }

    /// Describes a base model whose model file is not written yet.
    package init(
        name: String, source: InstalledBase.Source, sourceSHA256: String?, license: String?, isLicenseAccepted: Bool
    ) {
        self.name = name
        self.source = source
        self.sourceSHA256 = sourceSHA256
        self.license = license
        self.isLicenseAccepted = isLicenseAccepted
        modelSHA256 = ""
    }

    private struct Invalid: Error {}

    /// Decodes the record of the base model with a name.
    init(_ json: Data, of name: String) throws {
        self = try JSONDecoder().decode(BaseRecord.self, from: json)
        guard format <= Self.newestFormat, self.name == name else { throw Invalid() }
    }

    /// The bytes of the file; equal records have equal bytes.
    func encoded() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return [UInt8](try encoder.encode(self)) + [UInt8(ascii: "\n")]
    }
}

/// The SHA-256 of files.
package enum FileDigest {
    /// Reads a file and returns its SHA-256 as 64 hexadecimal digits in lower case.
    /// - Throws: `FileError` if the file cannot be read.
    package static func sha256(of file: URL) throws -> String {
        let descriptor = retryingInterrupts { open(file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard descriptor >= 0 else { throw FileError.cannotRead(file.path, errno: errno) }
        defer { close(descriptor) }
        var hash = SHA256()
        try withUnsafeTemporaryAllocation(byteCount: 1 << 18, alignment: 64) { chunk in
            while true {
                let count = retryingInterrupts { read(descriptor, chunk.baseAddress, chunk.count) }
                if count < 0 { throw FileError.cannotRead(file.path, errno: errno) }
                if count == 0 { return }
                hash.update(UnsafeRawBufferPointer(rebasing: chunk[..<count]).bytes)
            }
        }
        return hash.hexadecimal
    }

    /// Whether a text is a digest: 64 hexadecimal digits.
    package static func isDigest(_ text: String) -> Bool { text.wholeMatch(of: /[0-9A-Fa-f]{64}/) != nil }
}
