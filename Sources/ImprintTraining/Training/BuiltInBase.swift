internal import CImprintBase
public import ImprintModel

extension ModelFile {
    /// Returns the base model that comes with Imprint: a LogoNet for 96x96 pixels, trained on drawn logos only (docs/base.md).
    ///
    /// It has learned features such as edges, shapes and strokes, for which a few hundred photos do not suffice. The default start
    /// `ClassifierConfiguration.Start.builtInBase` is the same as:
    ///
    /// ```swift
    /// configuration.start = .base(try .builtInBase(), trainableLayers: .all)
    /// ```
    /// - Throws: `NetworkError.outOfMemory`.
    public static func builtInBase() throws -> ModelFile {
        var count = 0
        let start = imprint_base_model(&count)
        let bytes = Array(UnsafeBufferPointer(start: start, count: count))
        return try ModelFile(bytes, named: "the built-in base model")
    }

    /// The digest of the base model that comes with Imprint.
    static let builtInBaseDigest = try? builtInBase().digest
}
