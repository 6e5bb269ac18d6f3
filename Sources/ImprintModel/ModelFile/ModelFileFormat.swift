/// Checks that the metadata is that of a model file in a supported format.
///
/// Format 2 added int8 tensors, format 3 center-point detectors, format 4 anchor-based detectors, and format 5 the quantization of activations;
/// none changed anything else, so the metadata of all formats is read in the same way.
func checkFormat(of metadata: [String: String]) throws(ModelFileError.Problem) {
    guard let format = metadata[ModelFileKey.format] else {
        if metadata[Personalization.formatKey] != nil { throw .personalization }
        if metadata[FeatureCacheFile.formatKey] != nil { throw .featureCache }
        throw metadata[Checkpoint.formatKey] == nil ? .foreign : .checkpoint
    }
    guard let version = Int(format), version > 0 else { throw .unknownFormat(found: format) }
    guard version <= ModelFile.formatVersion else { throw .newerFormat(found: version) }
}
