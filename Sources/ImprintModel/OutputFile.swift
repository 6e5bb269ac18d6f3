package import Foundation
internal import ImprintImages

/// The rule for files that Imprint writes to a user-chosen path: a new file replaces only a file of the same kind that Imprint wrote.
///
/// Each kind is recognized by a marker: a metadata key of a safetensors, ONNX or Core ML file, the `generator` element of an HTML page, or a
/// comment of an image.
package enum OutputFile {
    /// Whether a new file may be written to `url`: it does not exist, is empty (as `mktemp` creates it), or is recognized.
    ///
    /// Folders and devices are left to `AtomicFile`, which rejects them.
    package static func canReplace(_ url: URL, ifRecognizedBy isRecognized: (URL) -> Bool) -> Bool {
        let url = url.resolvingSymlinksInPath()
        guard let status = FileStatus(url), status.isFile, status.size > 0 else { return true }
        return isRecognized(url)
    }

    /// Whether the safetensors file at `url` has a metadata key, also if the file is cut off or damaged after the key.
    package static func hasMetadata(_ key: String, _ url: URL) -> Bool {
        Safetensors.leadingMetadata(of: url)[key] != nil
    }

    /// The kind of an HTML page.
    package enum Page: String {
        case trainingReport = "training report"
        case crossValidationReport = "cross-validation report"
        case evaluationReport = "evaluation report"
        case auditReport = "audit report"

        /// The kind with a capital letter, such as "Training report".
        package var title: String { rawValue.prefix(1).uppercased() + rawValue.dropFirst() }
    }

    /// The start of the element that has the state of a run.
    private static let runPrefix = "<meta name=\"imprint-run\" content=\""

    /// Returns the element of a training report that has the state of its run; see `TrainingRecord.runState`.
    package static func runElement(_ state: String) -> String { "\(runPrefix)\(state)\">" }

    /// Returns the state of the run of the training report at `url`; nil if it has none or cannot be read.
    package static func runState(ofReport url: URL) -> String? {
        guard let file = try? FileHandle(forReadingFrom: url) else { return nil }
        defer { try? file.close() }
        guard let head = try? file.read(upToCount: 1024) else { return nil }
        let parts = String(decoding: head, as: UTF8.self).components(separatedBy: runPrefix)
        return parts.count < 2 ? nil : parts[1].components(separatedBy: "\"").first
    }

    /// Returns the element of an HTML page that names the program and the kind of page.
    package static func generatorElement(_ page: Page) -> String {
        "<meta name=\"generator\" content=\"Imprint \(page.rawValue)\">"
    }
}

/// The file format of cached features: a safetensors file with this metadata key.
package enum FeatureCacheFile {
    /// The metadata key of the format version.
    package static let formatKey = "imprint.features"
}
