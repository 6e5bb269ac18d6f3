/// The version, the licence and the intended use of a model, as its author states them.
public struct ModelDetails: Codable, Hashable, Sendable {
    /// The version, from 1 to 2⁵³ − 1; a newer model of the same author has a higher version.
    ///
    /// A `ModelStore` refuses to replace a signed model with an older one. Models that are derived from this model do not inherit it.
    public var version: Int?
    /// The licence, such as an SPDX identifier ("Apache-2.0").
    public var license: String?
    /// The use that the model is made for, in a few sentences.
    public var intendedUse: String?

    /// Creates details; by default, all are unknown.
    public init(version: Int? = nil, license: String? = nil, intendedUse: String? = nil) {
        self.version = version
        self.license = license
        self.intendedUse = intendedUse
    }

    /// The valid versions; all programs that read JSON can represent these numbers exactly.
    package static let versionRange = 1...(1 << 53) - 1
    /// The maximum length of a text in bytes of UTF-8.
    package static let maximumTextLength = 10_000

    /// The reason why the details are invalid, or nil.
    package var problem: String? {
        if let version, !Self.versionRange.contains(version) {
            return "the version is \(version), expected 1 to \(Self.versionRange.upperBound)"
        }
        for (name, text) in [("licence", license), ("intended use", intendedUse)] {
            guard let text else { continue }
            if text.allSatisfy(\.isWhitespace) { return "the \(name) is empty" }
            if text.utf8.count > Self.maximumTextLength {
                return "the \(name) has \(text.utf8.count) bytes, expected at most \(Self.maximumTextLength)"
            }
        }
        return nil
    }

    /// The details of a model that is derived from the model with these details.
    var derived: ModelDetails {
        var details = self
        details.version = nil
        return details
    }
}
