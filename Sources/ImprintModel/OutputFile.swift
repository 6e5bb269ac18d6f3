package import Foundation
internal import ImprintImages

/// The rule for every file that Imprint writes to a path that the user chooses: a new file only replaces a file of the same kind that Imprint
/// wrote.
///
/// Each kind carries a mark by which it is recognized: metadata of a safetensors, ONNX or Core ML file, a `generator` element of a page, a
/// comment of a picture.
package enum OutputFile {
    /// Whether a new file may be written to `url`: nothing is there yet, an empty file as `mktemp` makes it, or a file that `wrote` recognizes.
    ///
    /// Folders and devices are left to `AtomicFile`, which refuses them.
    package static func canReplace(_ url: URL, ifRecognizedBy wrote: (URL) -> Bool) -> Bool {
        let url = url.resolvingSymlinksInPath()
        guard let status = FileStatus(url), status.isFile, status.size > 0 else { return true }
        return wrote(url)
    }

    /// Whether a safetensors file has a metadata key.
    package static func hasMetadata(_ key: String, _ url: URL) -> Bool {
        (try? Safetensors.File(contentsOf: url))?.header.metadata[key] != nil
    }

    /// A kind of HTML page.
    package enum Page: String {
        case trainingReport = "training report"
        case auditReport = "audit report"
    }

    /// The element of an HTML page that names the program and the kind of page.
    package static func generatorElement(_ page: Page) -> String {
        "<meta name=\"generator\" content=\"Imprint \(page.rawValue)\">"
    }
}

/// The file format of cached features: a safetensors file with this metadata key.
package enum FeatureCacheFile {
    /// The metadata key of the format version.
    package static let formatKey = "imprint.features"
}
