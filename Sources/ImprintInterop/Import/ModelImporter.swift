public import Foundation
public import ImprintImages
public import ImprintModel
public import ImprintNetwork

/// Imports models from ONNX, Core ML, Caffe and PyTorch files, and a detector from TensorFlow Lite files.
///
/// ```swift
/// var importer = ModelImporter()
/// importer.labels = ["cat", "dog"]
/// let imported = try importer.read(URL(filePath: "model.onnx"))
/// try imported.model.write(to: URL(filePath: "model.imprint"))
/// ```
public struct ModelImporter: Sendable {
    /// The height and width of the network's input; `nil` for the size in the file, or 1280x1280 for CenterFace.
    ///
    /// For CenterFace, it is the maximum size to which an image is scaled. BlazeFace accepts only the size in the file.
    public var inputSize: Size2D?
    /// The architecture (`deploy.prototxt`) of a Caffe model.
    public var prototxt: URL?
    /// The architecture of a PyTorch checkpoint, which does not contain it: one of `architectures`.
    public var architecture: String?
    /// The labels in the order of the outputs; `nil` for the labels in the file.
    public var labels: [String]?
    /// The input normalization; `nil` for the normalization in the file.
    public var normalization: InputNormalization?
    /// The kind of detector that the file contains; `nil` for a classifier.
    public var detector: DetectorKind?
    /// The crop and scale mode; `nil` for the mode in a file that Imprint exported, otherwise a centre crop.
    public var cropAndScale: CropAndScale?

    /// Creates an importer that reads all settings from the file.
    public init() {}

    /// The conversion of samples 0…255 to the network's input: (sample − mean) · scale.
    public struct InputNormalization: Hashable, Sendable {
        /// The mean to subtract: one value, or one per channel (red, green, blue).
        public var mean: [Float]
        /// The factor to apply after the subtraction: one value, or one per channel.
        public var scale: [Float]
        /// Whether the network expects the channel order BGR.
        public var isBGR: Bool

        /// Creates an input normalization.
        public init(mean: [Float], scale: [Float], isBGR: Bool = false) {
            self.mean = mean
            self.scale = scale
            self.isBGR = isBGR
        }

        /// The normalization of torchvision's models: 0…1 minus the ImageNet mean, divided by its standard deviation.
        public static let imageNet = InputNormalization(
            mean: [123.675, 116.28, 103.53], scale: [1 / 58.395, 1 / 57.12, 1 / 57.375])
    }

    /// Imports a model.
    ///
    /// - Parameter url: An ONNX file, a Core ML file or package, the weights of a Caffe model whose architecture is
    ///   `prototxt`, a PyTorch checkpoint (from `torch.save`, or safetensors) whose architecture is `architecture`, or a
    ///   TensorFlow Lite model if `detector` is `DetectorKind.blazeFace`.
    /// - Throws: `ImportError` if Imprint cannot import the model, `FileError` if the file is unreadable,
    ///   `SafetensorsError` if a safetensors file is invalid.
    public func read(_ url: URL) throws -> ImportedModel {
        let path = url.path(percentEncoded: false)
        do {
            return try importModel(url)
        } catch let problem as ImportError.Problem {
            throw ImportError(path: path, problem: inputSizeProblem(problem, url) ?? problem)
        } catch let error as ImportError {
            // The prototxt of a Caffe model has a path of its own.
            throw ImportError(path: error.path, problem: inputSizeProblem(error.problem, url) ?? error.problem)
        } catch NetworkError.outOfMemory(let bytes) {
            throw ImportError(path: path, problem: .outOfMemory(byteCount: bytes))
        } catch let error as NetworkError {
            throw ImportError(path: path, problem: .network(node: "the network", error))
        } catch let problem as WireError {
            throw ImportError(path: path, problem: .malformed(reason: "\(problem)"))
        }
    }

    /// Returns the error for a rejected input size, if the import succeeds with the size in the file.
    private func inputSizeProblem(_ problem: ImportError.Problem, _ url: URL) -> ImportError.Problem? {
        guard let inputSize else { return nil }
        switch problem {
        // These do not depend on the size in the file.
        case .outOfMemory, .sideMultiple: return nil
        default: break
        }
        var other = self
        other.inputSize = nil
        return (try? other.importModel(url)).map { _ in .inputSize(inputSize, reason: problem.reason) }
    }

    private func importModel(_ url: URL) throws -> ImportedModel {
        let package = try CoreMLPackage(url)
        let file = try MappedFile(contentsOf: package.model)
        let format = try ModelFormat(of: file)
        if format.isImportable { try checkOptions(for: format) }
        switch format {
        case .onnx: return try readONNX(file)
        case .tensorFlowLite: return try readBlazeFace(file)
        case .caffe: return try readCaffe(file)
        case .coreML: return try CoreMLImporter.read(file, in: package, importer: self)
        case .pyTorch: return try readCheckpoint(PyTorchCheckpoint(archive: file))
        case .legacyPyTorch: return try readCheckpoint(PyTorchCheckpoint(legacy: file))
        case .safetensors: return try readCheckpoint(PyTorchCheckpoint(safetensors: file))
        case .hdf5:
            throw ImportError.Problem.unsuitableModel(
                found: format.name,
                advice: "Save a Caffe model as .caffemodel with Caffe, or export a Keras model to ONNX")
        case .gguf: throw ImportError.Problem.unknownFormat
        }
    }
}

extension ModelImporter {
    /// - Throws: `ImportError.Problem.unsuitableModel` if an option does not apply to this format.
    private func checkOptions(for format: ModelFormat) throws {
        func refuse(_ setting: String, _ reason: String, _ kind: ImportError.Setting) -> ImportError.Problem {
            .unsuitableModel(found: reason, advice: "Import it without \(setting)", setting: kind)
        }
        if format != .caffe && prototxt != nil {
            let reason = format.isCheckpoint ? "needs no prototxt" : "contains its architecture"
            throw refuse("a prototxt", "\(format.name), which \(reason)", .prototxt)
        }
        if !format.isCheckpoint && architecture != nil {
            let reason = format == .caffe ? "whose architecture is its prototxt" : "which contains its architecture"
            throw refuse("an architecture", "\(format.name), \(reason)", .architecture)
        }
        if let detector, format != detector.format {
            throw refuse(
                "a kind of detector", "\(format.name), but \(detector.rawValue) is \(detector.format.name)", .detector)
        }
        if format == .tensorFlowLite, detector == nil {
            throw ImportError.Problem.unsuitableModel(
                found: "\(format.name), but no kind of detector is set",
                advice:
                    "Imprint imports only \(DetectorKind.blazeFace.rawValue) from this format. Set this kind of detector",
                setting: .noDetector)
        }
        if format == .caffe && normalization?.isBGR == true {
            throw refuse("the BGR setting", "a Caffe model, whose channel order is always BGR", .isBGR)
        }
    }
}

/// A model that was imported from another format.
public struct ImportedModel: Sendable {
    /// The model.
    public let model: ModelFile
    /// Assumptions about settings that the file does not specify, as sentences.
    public let notes: [String]
    /// The notes about the output layer and the labels, which transfer learning replaces.
    package let headNotes: [String]
}

extension ModelFormat {
    /// Detects the format of a file.
    /// - Throws: `ImportError.Problem.unknownFormat` if it has no known format.
    init(of file: MappedFile) throws(ImportError.Problem) {
        let kind = FileKind(byteCount: file.count) { offset, count in
            let start = min(offset, file.count)
            return Array(file.bytes(start..<min(start + count, file.count)))
        }
        switch kind {
        case .model(let format): self = format
        case .checkpoint, .personalization, .featureCache: self = .safetensors
        // The pickle need not be the first entry.
        case .zip: self = .pyTorch
        default: throw .unknownFormat
        }
    }

    /// Whether the file contains only tensors.
    fileprivate var isCheckpoint: Bool { self == .pyTorch || self == .legacyPyTorch || self == .safetensors }
}
