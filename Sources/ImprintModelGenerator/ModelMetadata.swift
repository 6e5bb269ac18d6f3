internal import Foundation

/// The metadata of a model file that a generated type needs.
///
/// docs/reference/model-file.md specifies the file. Imprint verifies the whole file whenever it is loaded.
struct ModelMetadata: Equatable {
    /// The newest supported format, equal to `ModelFile.formatVersion`.
    static let newestFormat = 5
    /// The maximum length of a header in bytes.
    static let maximumHeaderLength = 100_000_000

    /// The labels, in the order of the file; at least one, all different.
    let labels: [String]

    /// Reads the header of the file at `url`.
    /// - Throws: `ModelHeaderError` if it is not a complete model file.
    init(contentsOf url: URL) throws(ModelHeaderError) {
        do {
            let file = try FileHandle(forReadingFrom: url)
            defer { try? file.close() }
            let length = try file.seekToEnd()
            try file.seek(toOffset: 0)
            let prefix = try file.read(upToCount: 8) ?? Data()
            guard prefix.count == 8 else { throw ModelHeaderError.Problem.noHeaderLength(fileLength: length) }
            let headerLength = prefix.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            guard headerLength <= Self.maximumHeaderLength else {
                throw ModelHeaderError.Problem.headerTooLong(headerLength)
            }
            guard headerLength <= length - 8, let header = try file.read(upToCount: Int(headerLength)),
                header.count == headerLength
            else { throw ModelHeaderError.Problem.headerBeyondEnd(headerLength, fileLength: length) }
            try self.init(header: header, dataLength: length - 8 - headerLength)
        } catch let problem as ModelHeaderError.Problem {
            throw ModelHeaderError(path: url.path, problem: problem)
        } catch {
            throw ModelHeaderError(path: url.path, problem: .cannotRead(reason: error.localizedDescription))
        }
    }

    private init(header bytes: Data, dataLength: UInt64) throws(ModelHeaderError.Problem) {
        guard let header = try? JSONDecoder().decode(Header.self, from: bytes) else { throw .malformedHeader }
        guard let format = header.metadata["imprint.format"] else {
            if header.metadata["imprint.personalization"] != nil { throw .personalization }
            throw header.metadata["imprint.checkpoint"] == nil ? .foreign : .checkpoint
        }
        guard let version = Int(format), 1...Self.newestFormat ~= version else { throw .unknownFormat(format) }
        guard header.dataLength == dataLength else {
            throw .wrongDataLength(found: dataLength, expected: header.dataLength)
        }
        guard let text = header.metadata["imprint.labels"],
            let labels = try? JSONDecoder().decode([String].self, from: Data(text.utf8)), !labels.isEmpty
        else { throw .noLabels }
        var seen = Set<String>()
        for label in labels where !seen.insert(label).inserted { throw .duplicateLabel(label) }
        self.labels = labels
    }
}

/// A safetensors header: an object with a member for each tensor, and one for the metadata.
private struct Header: Decodable {
    let metadata: [String: String]
    /// The end of the last tensor, from the start of the data.
    let dataLength: UInt64

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Name.self)
        var metadata: [String: String] = [:]
        var dataLength: UInt64 = 0
        for name in members.allKeys {
            if name.stringValue == "__metadata__" {
                metadata = try members.decode([String: String].self, forKey: name)
            } else {
                dataLength = max(dataLength, try members.decode(Tensor.self, forKey: name).end)
            }
        }
        (self.metadata, self.dataLength) = (metadata, dataLength)
    }

    private struct Tensor: Decodable {
        let end: UInt64

        private enum CodingKeys: String, CodingKey {
            case offsets = "data_offsets"
        }

        init(from decoder: any Decoder) throws {
            var offsets = try decoder.container(keyedBy: CodingKeys.self).nestedUnkeyedContainer(forKey: .offsets)
            _ = try offsets.decode(UInt64.self)
            end = try offsets.decode(UInt64.self)
        }
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
