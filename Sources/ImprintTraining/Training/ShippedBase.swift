internal import CImprintBase
public import ImprintModel

extension ModelFile {
    /// The base that comes with Imprint: a LogoNet for 96x96 pixels that was trained on drawn marks alone (docs/base.md).
    ///
    /// It knows edges, shapes and strokes, which a few hundred photos do not teach:
    ///
    /// ```swift
    /// configuration.start = .base(try .shippedBase(), trains: .all)
    /// ```
    ///
    /// is what `imprint train` begins with if it is given photos alone.
    /// - Throws: `NetworkError.outOfMemory`.
    public static func shippedBase() throws -> ModelFile {
        var count = 0
        let start = imprint_base_marks(&count)
        let bytes = Array(UnsafeBufferPointer(start: start, count: count))
        return try ModelFile(bytes, named: "the base that comes with Imprint")
    }

    /// The digest of the base that comes with Imprint.
    static let shippedDigest = try? shippedBase().digest
}
