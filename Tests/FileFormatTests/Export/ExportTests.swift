import Foundation
import ImprintImages
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork

/// The bytes of exported files, and models that cannot be exported.
@Suite struct ExportTests {
    /// Returns the bytes of the model in both formats.
    private func exported(_ model: ModelFile) throws -> [Data] {
        try withTemporaryFolder { folder in
            let (onnx, coreML) = (folder.appending(path: "m.onnx"), folder.appending(path: "m.mlmodel"))
            try model.writeONNX(to: onnx)
            try model.writeCoreML(to: coreML)
            return [try Data(contentsOf: onnx), try Data(contentsOf: coreML)]
        }
    }

    /// Checks that an export fails with this problem and text, and keeps the existing file.
    private func expectRefusal(
        _ problem: ExportError.Problem, _ message: String, _ write: (URL) throws -> Void,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "m")
            try Data("before".utf8).write(to: url)
            let error = #expect(throws: ExportError.self, sourceLocation: sourceLocation) { try write(url) }
            #expect(error?.problem == problem, sourceLocation: sourceLocation)
            let text = error?.description ?? ""
            #expect(text.hasPrefix("\(url.path): the export failed: ") && text.contains(message), "\(text)")
            #expect(try Data(contentsOf: url) == Data("before".utf8), sourceLocation: sourceLocation)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["m"])
        }
    }

    private func model(_ network: Network, change: (Parameters) -> Void = { _ in }) throws -> ModelFile {
        let parameters = try Parameters(network, seed: 1)
        change(parameters)
        return ModelFile(
            network: network, parameters: parameters,
            labels: (0..<(try network.labelCount())).map { "\($0)" },
            preprocessing: Preprocessing(
                width: network.input.width, height: network.input.height, channels: network.input.channels))
    }

    @Test("Equal models give equal bytes, and float16 files are about half as large")
    func bytes() throws {
        let model = try model(.lenet(labels: 3, inputSize: 16))
        #expect(try exported(model) == exported(model))
        try withTemporaryFolder { folder in
            let (onnx, coreML) = (folder.appending(path: "m.onnx"), folder.appending(path: "m.mlmodel"))
            try model.writeONNX(to: onnx, options: ONNXOptions(storagePrecision: .float16))
            try model.writeCoreML(to: coreML, options: CoreMLOptions(storagePrecision: .float16))
            for (half, whole) in zip([onnx, coreML], try exported(model)) {
                #expect(Double(try Data(contentsOf: half).count) < 0.55 * Double(whole.count))
            }
        }
    }

    /// Returns a logo detector with this network, whose heat maps have a stride of `stride` pixels.
    private func detector(_ network: Network, levels: [Int] = [96, 160], stride: Int = 16) throws -> ModelFile {
        ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: ["leaf", "other"],
            preprocessing: Preprocessing(
                width: network.input.width, height: network.input.height, cropAndScale: .scaleFill),
            detector: DetectorHead(levels: levels, stride: stride, span: 44, logos: [.init(label: "leaf")]))
    }

    @Test("All pyramid levels of an ONNX detector share the parameters, and float16 halves the file")
    func detectorBytes() throws {
        let model = try detector(Network.logoDetector(), levels: [96, 136, 192])
        #expect(try exported(model) == exported(model))
        let byteCount = 4 * model.parameters.layout.entries.reduce(0) { $0 + $1.parameter.count }
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "m")
            try model.writeONNX(to: url)
            #expect(try Data(contentsOf: url).count < byteCount + 100_000)
            try model.writeONNX(to: url, options: ONNXOptions(storagePrecision: .float16))
            #expect(try Data(contentsOf: url).count < byteCount / 2 + 100_000)
        }
    }

    @Test("An exported logo detector cannot be imported, and the error names the remedy")
    func detectorImport() throws {
        let model = try detector(Network.logoDetector())
        try withTemporaryFolder { folder in
            for (name, write) in [
                ("m.onnx", { try model.writeONNX(to: $0) }), ("m.mlmodel", { try model.writeCoreML(to: $0) }),
            ] as [(String, (URL) throws -> Void)] {
                let url = folder.appending(path: name)
                try write(url)
                let error = #expect(throws: ImportError.self) { try ModelImporter().read(url) }
                let text = error?.description ?? ""
                #expect(text.contains("a logo detector that Imprint exported"), "\(text)")
            }
        }
    }

    @Test("A detector whose padding depends on the size of the image is rejected for ONNX")
    func sizeDependentDetector() throws {
        var net = NetworkBuilder(name: "odd", input: TensorShape(height: 96, width: 96, channels: 3))
        // From 3n pixels, these layers make 3n or 3n - 1 positions, so the padding that is necessary for n positions differs.
        net.add(Convolution(outputChannels: 4, kernelSize: 1, stride: 2))
        net.add(UpsampleNearest(factor: 2))
        net.add(Convolution(outputChannels: 4, kernelSize: 2))
        net.add(Convolution(outputChannels: 4, kernelSize: 3, stride: 3, padding: .same), named: "third")
        net.add(Convolution(outputChannels: 1, kernelSize: 1), named: "head")
        let layer = UnsupportedLayer(
            node: "third", kind: "convolution", reason: "its padding depends on the size of the image")
        let model = try detector(net.network(), stride: 3)
        try expectRefusal(.unsupported(format: "ONNX", layers: [layer]), "\"third\" of kind convolution") {
            try model.writeONNX(to: $0)
        }
        // The sizes of Core ML are fixed.
        try withTemporaryFolder { try model.writeCoreML(to: $0.appending(path: "m")) }
    }

    @Test("Pyramid levels that are too small for the network, and updatable detectors, are rejected for Core ML")
    func invalidDetectors() throws {
        var net = NetworkBuilder(name: "large", input: TensorShape(height: 96, width: 96, channels: 3))
        net.add(AveragePool(kernelSize: 16))
        // Only heat maps of more than 3x3 positions can be reflected by 3.
        net.add(PadLayer(top: 3, left: 3, bottom: 3, right: 3, mode: .reflect))
        net.add(Convolution(outputChannels: 1, kernelSize: 7), named: "head")
        let model = try detector(net.network(), levels: [48, 96])
        let error = #expect(throws: ExportError.self) {
            try withTemporaryFolder { try model.writeCoreML(to: $0.appending(path: "m")) }
        }
        guard case .pyramidLevel(side: 48, _) = error?.problem else {
            Issue.record("unexpected: \(String(describing: error))")
            return
        }
        #expect(error?.description.contains("does not accept a pyramid level of 48x48 pixels") == true)
        let reason = "it is a logo detector, which has no class label to learn"
        try expectRefusal(.notUpdatable(reason: reason), "it is a logo detector") {
            try detector(Network.logoDetector()).writeCoreML(to: $0, options: CoreMLOptions(isUpdatable: true))
        }
    }

    @Test("Weights beyond float16, values that are not finite, and mismatched labels are rejected")
    func invalidModels() throws {
        let network = try Network.lenet(labels: 2, inputSize: 16, width: 0.1)
        let large = try model(network) { $0["head.weight"]?[3] = -70_000 }
        let problem = ExportError.Problem.exceedsFloat16(tensor: "head.weight", value: -70_000)
        try expectRefusal(problem, "head.weight has the value -70000.0") {
            try large.writeONNX(to: $0, options: ONNXOptions(storagePrecision: .float16))
        }
        try expectRefusal(problem, "head.weight has the value -70000.0") {
            try large.writeCoreML(to: $0, options: CoreMLOptions(storagePrecision: .float16))
        }
        #expect(try exported(large).count == 2)
        let diverged = try model(network) { $0["head.bias"]?[1] = .nan }
        let unlabelled = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["one"],
            preprocessing: Preprocessing(width: 16, height: 16, channels: 1))
        for wrong in [diverged, unlabelled] {
            let error = #expect(throws: ModelFileError.self) { try exported(wrong) }
            #expect(error?.path.hasSuffix("m.onnx") == true)
        }
    }

    @Test("A network that Core ML cannot train is rejected with the layer that prevents it")
    func notUpdatable() throws {
        func classifier(_ layers: any Layer...) throws -> ModelFile {
            var net = NetworkBuilder(name: "small", input: TensorShape(height: 4, width: 4, channels: 3))
            for layer in layers { net.add(layer) }
            return try model(net.network())
        }
        let updatable = CoreMLOptions(isUpdatable: true)
        let dense = Dense(outputChannels: 2)
        let cases: [(ModelFile, String)] = [
            (try classifier(GlobalAveragePool(), Softmax()), "it has no dense layer and no convolution"),
            (try classifier(GlobalAveragePool(), dense), "does not end in a softmax"),
            (try classifier(GlobalAveragePool(), dense, Softmax(), Dropout()), "does not end in a softmax"),
            (try classifier(GlobalAveragePool(), dense, LeakyReLU(), Softmax()), "\"leakyReLU1\" is between"),
            (try classifier(GlobalAveragePool(), dense, Softmax(), Softmax()), "\"softmax1\" is between"),
        ]
        for (model, message) in cases {
            try withTemporaryFolder { folder in
                let error = #expect(throws: ExportError.self, "\(message)") {
                    try model.writeCoreML(to: folder.appending(path: "m"), options: updatable)
                }
                #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
            }
        }
        try expectRefusal(.notUpdatable(reason: "its weights must be float32, not float16"), "float16") {
            let options = CoreMLOptions(storagePrecision: .float16, isUpdatable: true)
            try classifier(GlobalAveragePool(), dense, Softmax()).writeCoreML(to: $0, options: options)
        }
    }

    @Test("Layers that Core ML cannot express are listed by node, and ONNX can express them")
    func unsupported() throws {
        var net = NetworkBuilder(name: "small", input: TensorShape(height: 4, width: 4, channels: 3))
        net.add(LocalResponseNormalization(size: 4), named: "even")
        net.add(ReLU())
        net.add(LocalResponseNormalization(size: 2), named: "too")
        net.add(GlobalAveragePool())
        let model = try model(net.network())
        let layers = [("even", 4), ("too", 2)].map {
            UnsupportedLayer(
                node: $0, kind: "localResponseNormalization",
                reason: "Core ML requires an odd number of channels for the normalization window, not \($1)")
        }
        let message =
            "Core ML cannot express the layer \"even\" of kind localResponseNormalization (Core ML requires"
        try expectRefusal(.unsupported(format: "Core ML", layers: layers), message) { try model.writeCoreML(to: $0) }
        try withTemporaryFolder { try model.writeONNX(to: $0.appending(path: "m")) }
    }

    @Test("Layers of ConvNeXt that a format cannot express are listed: three for Core ML, and a tanh GELU for ONNX")
    func convNeXt() throws {
        func classifier(_ layer: any Layer) throws -> ModelFile {
            var net = NetworkBuilder(name: "small", input: TensorShape(height: 4, width: 4, channels: 3))
            net.add(layer, named: "odd")
            net.add(GlobalAveragePool())
            return try model(net.network())
        }
        for (layer, kind) in [(LayerNormalization(), "layerNormalization"), (GELU(), "gelu"), (Erf(), "erf")]
            as [(any Layer, String)]
        {
            let unsupported = UnsupportedLayer(node: "odd", kind: kind, reason: "Imprint cannot export it to Core ML")
            try expectRefusal(.unsupported(format: "Core ML", layers: [unsupported]), "\"odd\" of kind \(kind)") {
                try classifier(layer).writeCoreML(to: $0)
            }
        }
        let unsupported = UnsupportedLayer(node: "odd", kind: "gelu", reason: "Imprint cannot export it to ONNX")
        try expectRefusal(.unsupported(format: "ONNX", layers: [unsupported]), "\"odd\" of kind gelu") {
            try classifier(GELU(approximatesTanh: true)).writeONNX(to: $0)
        }
    }

    @Test("The export cases cover every layer type")
    func kinds() {
        let found = (ExportCase.all + ExportCase.onnxOnly).flatMap { $0.network.nodes.map { type(of: $0.layer).kind } }
        #expect(Set(found) == Set(LayerRegistry.all.map { $0.kind }))
    }
}
