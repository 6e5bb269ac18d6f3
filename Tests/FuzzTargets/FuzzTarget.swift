internal import Foundation
internal import ImprintImages
internal import ImprintInterop
internal import ImprintModel
internal import ImprintServe
internal import ImprintStore
internal import ImprintSynthesis
internal import ImprintTraining

/// A reader of untrusted bytes that libFuzzer calls; raw values are the names in Fuzzing/oss-fuzz.
public enum FuzzTarget: String, CaseIterable, Sendable {
    /// A model file.
    case modelFile = "model_file"
    /// The checkpoint of a training run.
    case checkpoint
    /// A personalization.
    case personalization
    /// Any safetensors file, with the values of its tensors.
    case safetensors
    /// An ONNX model.
    case onnx
    /// A Core ML model.
    case coreML = "core_ml"
    /// A Core ML package: the byte count of the model (4 bytes), the model, and its weight.bin.
    case coreMLPackage = "core_ml_package"
    /// A Caffe model: the byte count of the prototxt (4 bytes), the prototxt, and the weights.
    case caffe
    /// A PyTorch checkpoint in any of its formats, after a byte that selects the architecture.
    case pyTorch = "pytorch"
    /// A TensorFlow Lite model.
    case tensorFlowLite = "tflite"
    /// An image file in any format.
    case image
    /// The EXIF block of a JPEG file.
    case exif
    /// The colour profile of a JPEG file.
    case colorProfile = "color_profile"
    /// Annotations in COCO, Create ML, YOLO or Pascal VOC format, after a byte that selects the file.
    case annotations
    /// A list of photos with labels, as CSV or JSON.
    case labelList = "label_list"
    /// The recipe of a drawn data set.
    case drawingRecipe = "drawing_recipe"
    /// A request to the model server.
    case request
    /// A signature file of a model.
    case modelSignature = "model_signature"
    /// The statement of a model signature, which the target signs.
    case signedStatement = "signed_statement"
    /// A private or public key in PEM format.
    case pemKey = "pem_key"
    /// The list of installed models of a store.
    case storeIndex = "store_index"

    /// The prefix of a program's name.
    private static let prefix = "fuzz_"

    /// Returns the target of a program, whose name is `fuzz_` and the name of the target; nil for another name.
    public init?(program path: String) {
        let name = path.split(separator: "/").last ?? ""
        guard name.hasPrefix(Self.prefix) else { return nil }
        self.init(rawValue: String(name.dropFirst(Self.prefix.count)))
    }

    /// The name of the program.
    public var programName: String { Self.prefix + rawValue }

    /// Reads bytes; thrown errors are expected, crashes are not.
    public func read(_ bytes: UnsafeRawBufferPointer) throws {
        let data = Data(bytes)
        let files = try FuzzFiles.shared.get()
        switch self {
        case .modelFile: _ = try ModelFile(contentsOf: files.write(data))
        case .checkpoint: _ = try Checkpoint(contentsOf: files.write(data))
        case .personalization: _ = try Personalization(contentsOf: files.write(data))
        case .safetensors:
            let file = try Safetensors.File(contentsOf: files.write(data))
            _ = try file.dataDigest()
            for tensor in file.header.tensors { _ = try? file.values(of: tensor) }
        case .onnx, .coreML: _ = try ModelImporter().read(files.write(data))
        case .coreMLPackage:
            let (model, weights) = parts(data)
            _ = try files.write(model, "model.mlpackage/Data/model.mlmodel")
            _ = try files.write(weights, "model.mlpackage/Data/weights/weight.bin")
            _ = try ModelImporter().read(files.folder.appending(path: "model.mlpackage"))
        case .caffe:
            let (prototxt, weights) = parts(data)
            var importer = ModelImporter()
            importer.prototxt = try files.write(prototxt, "prototxt")
            _ = try importer.read(files.write(weights))
        case .pyTorch:
            let architectures = ModelImporter.architectures
            var importer = ModelImporter()
            importer.architecture = data.first.map { architectures[Int($0) % architectures.count] }
            _ = try importer.read(files.write(data.dropFirst()))
        case .tensorFlowLite:
            var importer = ModelImporter()
            importer.detector = .blazeFace
            _ = try importer.read(files.write(data))
        case .image: try readImage(files.write(data))
        case .exif: try readImage(files.write(files.jpeg(marker: 0xE1, [Array("Exif\0\0".utf8) + data.prefix(65_527)])))
        case .colorProfile: try readImage(files.write(files.jpeg(profile: data)))
        case .annotations:
            let dataset = try files.writeAnnotations(data)
            // With a folder of photos, the paths in data.yaml are not followed; they could be any folder of the computer.
            _ = try BoxAnnotations(contentsOf: dataset, photos: dataset.appending(path: "images"))
        case .labelList: _ = try LabelList(at: files.write(data))
        case .drawingRecipe: _ = try DrawingRecipe(contentsOf: files.write(data, "recipe.json"))
        case .request: try files.requests.read(data)
        case .modelSignature:
            let signature = try ModelSignature(data, named: "model.sig")
            // Few signatures are valid.
            _ = try? signature.verify(files.signedFolder, with: files.key.verificationKey)
        case .signedStatement:
            let signature = try ModelSignature(signing: data, with: files.key, named: "model.sig")
            try signature.verify(files.signedFolder, with: files.key.verificationKey)
        case .pemKey:
            let file = try files.write(data, "key.pem")
            // The same file can contain both keys.
            let key = try? SigningKey(contentsOf: file).verificationKey
            _ = try VerificationKey(pem: try (key ?? VerificationKey(contentsOf: file)).pem)
        case .storeIndex:
            _ = try files.write(data, "store/models.json")
            _ = (try files.store.current, try files.store.previous)
        }
    }

    /// Reads the metadata of an image, its capture time and its pixels.
    private func readImage(_ file: URL) throws {
        // Larger images take seconds to decode, as they should.
        let information = try ImageFile.information(of: file)
        guard information.width * information.height <= 1 << 20 else { return }
        _ = try ImageSketch(file)
        _ = try ImageFile.decode(file, keepsAlpha: true)
    }

    /// Splits bytes into a part whose length precedes it, and the rest.
    private func parts(_ bytes: Data) -> (Data, Data) {
        let length = bytes.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        let rest = bytes.dropFirst(4)
        return (Data(rest.prefix(length)), Data(rest.dropFirst(length)))
    }
}
