internal import CImprintBase
public import ImprintModel

extension ModelFile {
    /// Returns the base model that comes with Imprint: a LogoNet for 96x96 pixels, trained on drawn logos only (docs/explanation/base.md).
    ///
    /// It has learned features such as edges, shapes and strokes, which a network cannot learn from a few hundred photos. The default start
    /// `ClassifierConfiguration.Start.builtInBase` is the same as:
    ///
    /// ```swift
    /// configuration.start = .base(try .builtInBase(), trainableLayers: .all)
    /// ```
    /// - Throws: `NetworkError.outOfMemory`.
    public static func builtInBase() throws -> ModelFile {
        try ModelFile(embedded: imprint_base_model, named: "the built-in base model")
    }

    /// Creates a model from bytes that are part of the program.
    /// - Parameters:
    ///   - bytes: A function of CImprintBase, which returns the first byte and stores the number of bytes.
    ///   - name: The name of the model in messages.
    init(embedded bytes: (UnsafeMutablePointer<Int>?) -> UnsafePointer<UInt8>?, named name: String) throws {
        var count = 0
        let start = bytes(&count)
        try self.init(Array(UnsafeBufferPointer(start: start, count: count)), named: name)
    }

    /// The digest of the base model that comes with Imprint.
    static let builtInBaseDigest = try? builtInBase().digest
}
