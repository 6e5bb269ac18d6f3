internal import Foundation
internal import ImprintStore
internal import ImprintTraining

/// A base model to install.
struct BaseSource: Sendable {
    let name: String
    let location: BaseModelCatalog.Entry.Source
    /// The expected SHA-256 of the file in lower case; nil only for a local folder.
    let sha256: String?
    /// The architecture that the user has chosen.
    var chosenArchitecture: String?
    /// The entry of the catalog with the licence, which the user has accepted.
    var entry: BaseModelCatalog.Entry?

    init(name: String, location: BaseModelCatalog.Entry.Source, sha256: String?) {
        (self.name, self.location, self.sha256) = (name, location, sha256)
    }

    /// Describes an entry.
    init(_ entry: BaseModelCatalog.Entry) {
        self.init(name: entry.name, location: entry.source, sha256: entry.sha256)
        self.entry = entry
    }

    /// The catalog entry of the same file, which provides the conversion settings, unless another architecture is chosen.
    var settings: BaseModelCatalog.Entry? {
        guard let entry, entry.sha256 == sha256 else { return nil }
        return chosenArchitecture == nil || chosenArchitecture == entry.architecture ? entry : nil
    }

    /// The architecture of a PyTorch checkpoint; nil if the file contains it.
    var architecture: String? { chosenArchitecture ?? settings?.architecture }

    var record: BaseRecord {
        let source: InstalledBase.Source =
            switch location {
            case .pip(let package, let version, let path):
                InstalledBase.Source(kind: .pip, location: "\(package)/\(path)", version: version)
            case .https(let url): InstalledBase.Source(kind: .https, location: VerifiedDownload.redacted(url))
            case .file(let url): InstalledBase.Source(kind: .file, location: url.standardizedFileURL.path)
            }
        return BaseRecord(
            name: name, source: source, sourceSHA256: sha256, architecture: architecture,
            license: entry?.license.name, isLicenseAccepted: entry != nil)
    }
}
