/// Migrations of the metadata to the next format, keyed by the older format.
///
/// Format 2 added int8 tensors, format 3 center-point detectors, format 4 anchor-based detectors, and format 5 the quantization of activations;
/// none changed anything else.
private let migrations: [Int: @Sendable ([String: String]) throws(ModelFileError.Problem) -> [String: String]] = [
    1: { metadata throws(ModelFileError.Problem) in metadata },
    2: { metadata throws(ModelFileError.Problem) in metadata },
    3: { metadata throws(ModelFileError.Problem) in metadata },
    4: { metadata throws(ModelFileError.Problem) in metadata },
]

/// Returns the metadata in the newest format.
func migrated(_ metadata: [String: String]) throws(ModelFileError.Problem) -> [String: String] {
    guard let format = metadata[ModelFileKey.format] else {
        if metadata[Personalization.formatKey] != nil { throw .personalization }
        throw metadata[Checkpoint.formatKey] == nil ? .foreign : .checkpoint
    }
    guard let version = Int(format), version > 0 else { throw .unknownFormat(found: format) }
    guard version <= ModelFile.formatVersion else { throw .newerFormat(found: version) }
    var metadata = metadata
    for older in version..<ModelFile.formatVersion {
        guard let migrate = migrations[older] else { throw .unknownFormat(found: format) }
        metadata = try migrate(metadata)
    }
    return metadata
}
