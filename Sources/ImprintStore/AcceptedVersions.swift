/// The versions that a store accepts from a signer.
///
/// A valid signature does not expire. An attacker who controls the server could therefore offer an older model with its valid
/// signature, for example one with a known weakness. The version in the model file (`ModelDetails.version`) prevents this: the
/// signature covers the whole file, so only the signer can set it.
///
/// A store records the highest version that it has installed for each public key, also after a rollback. A model without a version counts
/// as version 0.
public enum AcceptedVersions: Sendable, Equatable {
    /// Only models with a higher version than all models that were installed with the same public key, or the same file again.
    ///
    /// `from` is the minimum version, which also protects the first installation: a model with a lower version is rejected. Without any
    /// versions, the store accepts all models of the signer.
    case increasing(from: Int = 0)
    /// All models of the signer, also older ones.
    case any

    /// Checks a model against the newest model of the same key.
    /// - Throws: `StoreError.outdated`.
    func check(_ model: InstalledModel, newest: StoreIndex.Newest?) throws(StoreError) {
        guard case .increasing(let minimum) = self else { return }
        let version = model.version ?? 0
        if let newest, newest.sha256 != model.sha256, version <= newest.version {
            throw .outdated(url: model.source, found: model.version, expected: newest.version + 1)
        }
        if version < minimum { throw .outdated(url: model.source, found: model.version, expected: minimum) }
    }
}
