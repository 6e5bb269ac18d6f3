public import Foundation
public import ImprintImages
public import ImprintModel
public import ImprintNetwork

/// Reads models of other programs: ONNX, Core ML and Caffe.
///
/// ```swift
/// var importer = ModelImporter()
/// importer.labels = ["cat", "dog"]
/// let model = try importer.read(URL(filePath: "model.onnx"))
/// try model.weights.write(to: URL(filePath: "model.imprint"))
/// ```
public struct ModelImporter: Sendable {
    /// Height and width of the network's input, instead of those in the file; `nil` for those.
    public var inputSize: Size2D?
    /// The architecture of a Caffe model.
    public var prototxt: URL?
    /// The labels, in the order of the outputs, where the file has none or others are wanted.
    public var labels: [String]?
    /// How photos become the network's input, where the file does not say or something else is wanted.
    public var samples: SampleRule?
    /// How a photo is fitted into the input; `nil` for what a file that Imprint exported says, else the centre.
    public var cropAndScale: CropAndScale?

    /// Makes an importer that takes all from the file.
    public init() {}

    /// How samples 0…255 become the network's input, (sample − mean) · scale.
    public struct SampleRule: Hashable, Sendable {
        /// What is subtracted: one number, or one a channel (red, green, blue).
        public var mean: [Float]
        /// What the difference is multiplied by: one number, or one a channel.
        public var scale: [Float]
        /// Whether the network takes blue first.
        public var isBlueFirst: Bool

        /// Makes a rule.
        public init(mean: [Float], scale: [Float], isBlueFirst: Bool = false) {
            self.mean = mean
            self.scale = scale
            self.isBlueFirst = isBlueFirst
        }

        /// What torchvision's models take: 0…1 less the mean of ImageNet's photos, divided by their deviation.
        public static let imageNet = SampleRule(
            mean: [123.675, 116.28, 103.53], scale: [1 / 58.395, 1 / 57.12, 1 / 57.375])
    }

    /// Reads a model.
    /// - Parameter url: An ONNX file, a Core ML file or package, or the weights of a Caffe model whose architecture is `prototxt`.
    /// - Throws: `ImportError` if it cannot be a model here, `FileError` if it cannot be read.
    public func read(_ url: URL) throws -> ImportedModel {
        let path = url.path(percentEncoded: false)
        do {
            return try readWhole(url)
        } catch let problem as ImportError.Problem {
            throw ImportError(path: path, problem: isOfSize(problem, url) ?? problem)
        } catch NetworkError.outOfMemory(let bytes) {
            throw ImportError(path: path, problem: .outOfMemory(byteCount: bytes))
        } catch let error as NetworkError {
            throw ImportError(path: path, problem: .network(node: "the network", error))
        } catch let problem as WireProblem {
            throw ImportError(path: path, problem: .malformed(reason: "\(problem)"))
        }
    }

    /// What is wrong where the model can be read with an image of its own size.
    private func isOfSize(_ problem: ImportError.Problem, _ url: URL) -> ImportError.Problem? {
        guard let inputSize else { return nil }
        if case .outOfMemory = problem { return nil }
        var own = self
        own.inputSize = nil
        return (try? own.readWhole(url)).map { _ in .inputSize(inputSize, reason: problem.reason) }
    }

    private func readWhole(_ url: URL) throws -> ImportedModel {
        let package = try CoreMLPackage(url)
        let file = try MappedFile(contentsOf: package.model)
        let kind = try ModelKind(file)
        try checkOptions(for: kind)
        switch kind {
        case .onnx: return try readONNX(file)
        case .caffe: return try readCaffe(file)
        case .coreML: return try CoreMLImporter.read(file, in: package, importer: self)
        }
    }
}

extension ModelImporter {
    /// - Throws: `ImportError.Problem.otherKind` if options are for models of another kind.
    private func checkOptions(for kind: ModelKind) throws {
        if kind != .caffe && prototxt != nil {
            throw ImportError.Problem.otherKind(
                found: "\(kind.rawValue), which has its architecture in it", advice: "leave out --prototxt")
        }
        if kind == .caffe && samples?.isBlueFirst == true {
            throw ImportError.Problem.otherKind(
                found: "a Caffe model, which takes blue first as it is", advice: "leave out --bgr")
        }
    }
}

/// What was made of a model of another program.
public struct ImportedModel: Sendable {
    /// The model.
    public let weights: ModelFile
    /// What the file does not say and was assumed, in sentences.
    public let notes: [String]
}

/// The formats, told apart by what the files hold.
enum ModelKind: String {
    case onnx = "an ONNX model"
    case coreML = "a Core ML model"
    case caffe = "a Caffe model"

    /// - Throws: `ImportError.Problem.unknownFormat` if it is none of them.
    init(_ file: MappedFile) throws {
        if CaffeWeights.isHDF5(file) {
            self = .caffe
            return
        }
        var numbers: [Int: Bool] = [:]
        do {
            try WireMessage(file).forEachField { numbers[$0.number] = $0.isPacked }
        } catch {
            throw ImportError.Problem.unknownFormat
        }
        // A version or a name comes first; then graph and operators, a kind of model, or layers.
        if numbers[7] == true, numbers[8] == true || numbers[1] == false {
            self = .onnx
        } else if numbers[1] == false, numbers[2] == true, numbers.keys.contains(where: { $0 >= 200 }) {
            self = .coreML
        } else if numbers[1] ?? true, numbers[100] == true || numbers[2] == true {
            self = .caffe
        } else {
            throw ImportError.Problem.unknownFormat
        }
    }
}
