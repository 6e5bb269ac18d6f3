package import Foundation
internal import ImprintImages
internal import ImprintModel

/// A kind of file that Imprint writes to a path that the user chooses.
///
/// Imprint only replaces a file that it wrote itself, and only with a file of the same kind. `wrote(_:)` recognizes each kind
/// by a signature: metadata in a safetensors, ONNX or Core ML file, a `generator` element in an HTML page, a comment in an
/// image, or the header of a table.
package enum OutputKind: String, CaseIterable, Sendable {
    case model = "model file"
    case personalization = "personalization file"
    case featureCache = "feature cache"
    case checkpoint = "checkpoint"
    case trainingReport = "training report"
    case crossValidationReport = "cross-validation report"
    case evaluationReport = "evaluation report"
    case auditReport = "audit report"
    case contactSheet = "contact sheet"
    case cutOut = "cut-out"
    case onnxModel = "ONNX model"
    case coreMLModel = "Core ML model"
    case predictionTable = "table of fold predictions"
    case detections = "COCO file of detections"
    case signature = "model signature"

    /// Whether a new file of this kind may replace the file at `url`.
    ///
    /// This is the case if the file is missing or empty (for example created by `mktemp`), or if Imprint wrote it as a file of this
    /// kind. `AtomicFile` rejects folders and devices.
    package func canReplace(_ url: URL) -> Bool { OutputFile.canReplace(url, ifRecognizedBy: wrote) }

    /// Whether Imprint wrote the file at `url` as a file of this kind; false if the file is unreadable.
    package func wrote(_ url: URL) -> Bool {
        switch self {
        case .model: ModelFile.isModelFile(at: url)
        case .personalization: Personalization.isPersonalization(at: url)
        case .featureCache: OutputFile.hasMetadata(FeatureCacheFile.formatKey, url)
        case .checkpoint: OutputFile.hasMetadata(Checkpoint.formatKey, url)
        case .trainingReport: isPage(.trainingReport, url)
        case .crossValidationReport: isPage(.crossValidationReport, url)
        case .evaluationReport: isPage(.evaluationReport, url)
        case .auditReport: isPage(.auditReport, url)
        case .contactSheet: ImageSignature.contactSheet.isIn(url)
        case .cutOut: ImageSignature.cutOut.isIn(url)
        case .onnxModel: Self.hasExportedNetwork(url, fields: [14])
        case .coreMLModel: Self.hasExportedNetwork(url, fields: [2, 100, 100])
        case .predictionTable: starts(url, with: Self.predictionTableHeader)
        case .detections: starts(url, with: Self.detectionsHeader)
        case .signature: starts(url, with: Self.signatureHeader)
        }
    }

    /// The start of the first line of a table of the predictions of a cross-validation.
    package static let predictionTableHeader = "seed,fold,file,label,predicted,correct,"

    /// The start of a COCO file of detections.
    package static let detectionsHeader = "{\"info\":{\"description\":\"Detections by Imprint\"},\n"

    /// The start of a model signature; other programs write its keys in another order.
    package static let signatureHeader = "{\"dsseEnvelope\":{\"payload\":\""

    /// The name with an indefinite article: "a model file", "an ONNX model".
    package var withArticle: String {
        switch self {
        case .evaluationReport, .auditReport, .onnxModel: "an \(rawValue)"
        default: "a \(rawValue)"
        }
    }
}

// MARK: Extensions

extension OutputKind {
    /// The extensions that fit the names of such files, in lower case; the first one is the usual one.
    package var fileExtensions: [String] {
        switch self {
        case .model, .personalization: ["imprint", "safetensors"]
        case .featureCache: ["features", "imprint", "safetensors"]
        case .checkpoint: ["safetensors"]
        case .trainingReport, .crossValidationReport, .evaluationReport, .auditReport: ["html", "htm"]
        case .contactSheet: ["png", "jpg", "jpeg"]
        case .cutOut: ["png"]
        case .onnxModel: ["onnx"]
        case .coreMLModel: ["mlmodel"]
        case .predictionTable: ["csv", "txt"]
        case .detections: ["json", "txt"]
        case .signature: ["sig", "json"]
        }
    }

    /// Returns the other format that the extension of a file name stands for, with an article.
    /// - Returns: The other format; nil if the extension is missing, unknown, or right for this kind of file.
    package func otherFormat(ofExtensionIn path: String) -> String? {
        let name = URL(filePath: path).pathExtension.lowercased()
        guard !fileExtensions.contains(name) else { return nil }
        guard imageExtensions.contains(name) else { return Self.formats[name] }
        let isImage = fileExtensions.contains(where: imageExtensions.contains)
        return isImage ? nil : "an image"
    }

    /// The formats of extensions, except those of images.
    private static let formats: [String: String] = {
        let models = ModelFormat.allCases.flatMap { format in format.fileExtensions.map { ($0, format.name) } }
        let others = [
            "prototxt": "a Caffe network", "html": "an HTML page", "htm": "an HTML page", "csv": "a CSV table",
            "json": "a JSON file", "jsonl": "a JSON Lines file", "txt": "a text file", "sig": "a signature",
            "svg": "an SVG drawing", "pdf": "a PDF document", "zip": "a ZIP archive",
            // These extensions say more than the format of the model.
            "imprint": "a model file", "safetensors": "a safetensors file",
            "mlpackage": "a Core ML package, which is a folder",
        ]
        return Dictionary(models, uniquingKeysWith: { first, _ in first }).merging(others) { _, other in other }
    }()
}

// MARK: Signatures

extension OutputKind {
    private func starts(_ url: URL, with text: String) -> Bool {
        guard let file = try? FileHandle(forReadingFrom: url) else { return false }
        defer { try? file.close() }
        return (try? file.read(upToCount: text.utf8.count)) == Data(text.utf8)
    }

    private func isPage(_ page: OutputFile.Page, _ url: URL) -> Bool {
        guard let file = try? FileHandle(forReadingFrom: url) else { return false }
        defer { try? file.close() }
        guard let head = try? file.read(upToCount: 1024) else { return false }
        let text = String(decoding: head, as: UTF8.self)
        return text.hasPrefix("<!doctype html>") && text.contains(OutputFile.generatorElement(page))
    }

    /// Whether a protobuf file has the network in its metadata, which `ExportedModel` writes.
    /// - Parameter fields: The path of field numbers from the top-level message to the metadata map.
    private static func hasExportedNetwork(_ url: URL, fields: [Int]) -> Bool {
        guard let file = try? MappedFile(contentsOf: url) else { return false }
        return (try? contains(ModelFileKey.network, fields[...], in: WireMessage(file))) ?? false
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
