package import Foundation
internal import ImprintImages
internal import ImprintModel

/// A kind of file that Imprint writes to a path that the user chooses.
///
/// The rule for all of them: a file is only replaced by a file of the same kind, and only if Imprint wrote it. Each kind carries a mark by which
/// `wrote(_:)` recognizes it: metadata of a safetensors, ONNX or Core ML file, a `generator` element of a page, a comment of a picture.
package enum OutputKind: String, CaseIterable, Sendable {
    case model = "model file"
    case personalization = "personalization file"
    case featureCache = "feature cache"
    case checkpoint = "checkpoint"
    case trainingReport = "training report"
    case auditReport = "audit report"
    case contactSheet = "contact sheet"
    case onnxModel = "ONNX model"
    case coreMLModel = "Core ML model"

    /// Whether a new file of this kind may be written to `url`: nothing is there yet, an empty file as `mktemp` makes it, or an earlier
    /// file of this kind that Imprint wrote.
    ///
    /// Folders and devices are left to `AtomicFile`, which refuses them.
    package func canReplace(_ url: URL) -> Bool { OutputFile.canReplace(url, ifRecognizedBy: wrote) }

    /// Whether Imprint wrote the file at `url`, as a file of this kind; false if it cannot be read.
    package func wrote(_ url: URL) -> Bool {
        switch self {
        case .model: ModelFile.isOne(url)
        case .personalization: Personalization.isOne(url)
        case .featureCache: OutputFile.hasMetadata(FeatureCacheFile.formatKey, url)
        case .checkpoint: OutputFile.hasMetadata(Checkpoint.formatKey, url)
        case .trainingReport: isPage(.trainingReport, url)
        case .auditReport: isPage(.auditReport, url)
        case .contactSheet: ContactSheet.wrote(url)
        case .onnxModel: Self.hasExportedNetwork(url, fields: [14])
        case .coreMLModel: Self.hasExportedNetwork(url, fields: [2, 100, 100])
        }
    }

    /// The name in a sentence: "a model file", "an ONNX model".
    package var withArticle: String {
        switch self {
        case .auditReport, .onnxModel: "an \(rawValue)"
        default: "a \(rawValue)"
        }
    }
}

// MARK: Marks

extension OutputKind {
    private func isPage(_ page: OutputFile.Page, _ url: URL) -> Bool {
        guard let file = try? FileHandle(forReadingFrom: url) else { return false }
        defer { try? file.close() }
        guard let head = try? file.read(upToCount: 1024) else { return false }
        let text = String(decoding: head, as: UTF8.self)
        return text.hasPrefix("<!doctype html>") && text.contains(OutputFile.generatorElement(page))
    }

    /// Whether a protobuf file has the network in its metadata, as `ExportedModel` writes it.
    /// - Parameter fields: The field numbers that lead from the file's message to the map of its metadata.
    private static func hasExportedNetwork(_ url: URL, fields: [Int]) -> Bool {
        guard let file = try? MappedFile(contentsOf: url) else { return false }
        return (try? contains(ExportedModel.networkKey, fields[...], in: WireMessage(file))) ?? false
    }

    private static func contains(
        _ key: String, _ fields: ArraySlice<Int>, in message: WireMessage
    ) throws -> Bool {
        var isFound = false
        try message.forEachField { field in
            if let number = fields.first {
                guard !isFound, field.number == number else { return }
                isFound = try contains(key, fields.dropFirst(), in: field.message())
            } else if field.number == 1 {
                isFound = try field.string() == key
            }
        }
        return isFound
    }
}
