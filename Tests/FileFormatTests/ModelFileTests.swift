import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// Returns a small classifier, whose parameters all differ from their initial values.
func sampleModel(
    labels: [String] = ["logo", "other"], precision: Safetensors.Precision = .float32
) throws -> ModelFile {
    let network = try Network.logonet(labels: labels.count, inputSize: 16, width: 0.1)
    let parameters = try Parameters(network, seed: 5)
    for entry in parameters.layout.entries {
        parameters.withValues(of: entry) { values in
            for index in values.indices { values[index] += Float(index) * 0x1p-20 }
        }
    }
    var preprocessing = Preprocessing(width: 16, height: 16, cropAndScale: .scaleFit)
    preprocessing.mean = [0.1, 127.5, 1e-7]  // Values whose decimal form must survive exactly.
    var hyperparameters = ClassifierHyperparameters()
    hyperparameters.seed = .max
    hyperparameters.epochs = 3
    hyperparameters.learningRate = 0.1
    hyperparameters.weightDecay = 5e-4
    hyperparameters.labelSmoothing = 0.1
    hyperparameters.augmentation = Augmentation([.flip])
    return ModelFile(
        network: network, parameters: parameters, labels: labels, preprocessing: preprocessing,
        training: TrainingRecord(
            .classifier(hyperparameters), dataDigest: SHA256.hexadecimal(of: []),
            trainingImages: ["logo": 3, "other": 4],
            history: [
                EpochMetrics(epoch: 1, loss: .infinity, accuracy: 0.1, learningRate: 1e-7),
                EpochMetrics(
                    epoch: 2, loss: 0.7, accuracy: 0.5, validationLoss: 0.3, validationAccuracy: 0.9, learningRate: 0.1),
            ],
            precisionRecall: ["logo": [.init(threshold: 0.5, precision: 1, recall: 0.25)]],
            thresholds: ["logo": 0.1 + 0.2],
            calibration: Calibration(temperature: 1.75, errorBefore: 0.1, errorAfter: 0.03, images: 7)),
        baseDigest: SHA256.hexadecimal(of: [1]), storagePrecision: precision)
}

@Suite struct ModelFileTests {
    @Test("A model can be read from memory, and a truncated one is rejected by its name")
    func memory() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let digest = try sampleModel(precision: .float16).write(to: url)
            let bytes = [UInt8](try Data(contentsOf: url))
            let read = try ModelFile(bytes, named: "the model")
            #expect(read.digest == digest)
            #expect(try read.tensorDigest() == ModelFile(contentsOf: url).tensorDigest())
            for count in [0, 7, 8, 500, bytes.count - 1] {
                let error = #expect(throws: SafetensorsError.self) {
                    try ModelFile(Array(bytes.prefix(count)), named: "the model")
                }
                #expect(error?.path == "the model")
            }
        }
    }

    @Test("A float32 model survives a round trip bitwise")
    func float32() throws {
        let model = try sampleModel(labels: ["logo", "\"quoted\" / é 😀"])
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let digest = try model.write(to: url)
            let read = try ModelFile(contentsOf: url)
            #expect(read.network == model.network)
            #expect(read.labels == model.labels)
            #expect(read.preprocessing == model.preprocessing)
            #expect(read.training == model.training)
            #expect(read.baseDigest == model.baseDigest)
            #expect(read.storagePrecision == .float32)
            #expect(read.digest == digest)
            for entry in model.parameters.layout.entries {
                let expected = try #require(model.parameters[entry.name])
                let found = try #require(read.parameters[entry.name])
                #expect(found.map(\.bitPattern) == expected.map(\.bitPattern), "\(entry.name)")
            }
        }
    }

    /// Returns the bit patterns of all parameters.
    private func bitPatterns(of model: ModelFile) -> [UInt32] {
        model.parameters.withValues { $0.map(\.bitPattern) }
    }

    @Test("Parameters are independent of a later replacement of their file", arguments: [true, false])
    func mapped(maps: Bool) throws {
        let model = try sampleModel()
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try model.write(to: url)
            let file = try Safetensors.File(contentsOf: url)
            #expect(file.mapped(model.parameters.layout) != nil)
            let bytes = try Data(contentsOf: url)
            let read = maps ? try ModelFile(contentsOf: url) : try ModelFile(copyingContentsOf: url)
            let name = try #require(model.parameters.layout.entries.first?.name)
            read.parameters[name] = read.parameters[name]?.map { $0 + 1 }
            #expect(try Data(contentsOf: url) == bytes)
            let changed = bitPatterns(of: read)
            #expect(changed != bitPatterns(of: model))
            try sampleModel(labels: ["a", "b", "c"]).write(to: url)
            #expect(bitPatterns(of: read) == changed)
            try FileManager.default.removeItem(at: url)
            #expect(bitPatterns(of: read) == changed)
        }
    }

    @Test("Tensors in another order are readable", arguments: [Safetensors.Precision.float32, .float16])
    func sorted(_ precision: Safetensors.Precision) throws {
        let model = try sampleModel(precision: precision)
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try model.write(to: url)
            let expected = bitPatterns(of: try ModelFile(contentsOf: url))
            let file = try Safetensors.File(contentsOf: url)
            let tensors = try file.header.tensors.map {
                Safetensors.Tensor(name: $0.name, shape: $0.shape, values: try file.values(of: $0))
            }
            try Safetensors.write(tensors, as: precision, to: url) { digest in
                file.header.metadata.merging(["imprint.digest": digest]) { $1 }
            }
            #expect(try Safetensors.File(contentsOf: url).mapped(model.parameters.layout) == nil)
            #expect(bitPatterns(of: try ModelFile(contentsOf: url)) == expected)
            #expect(bitPatterns(of: try ModelFile(copyingContentsOf: url)) == expected)
        }
    }

    @Test("Float16 rounds parameters once, and further round trips do not change them")
    func float16() throws {
        let model = try sampleModel(precision: .float16)
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let digest = try model.write(to: url)
            let file = try Safetensors.File(contentsOf: url)
            #expect(file.header.tensors.allSatisfy { $0.elementType == .float16 })
            let read = try ModelFile(contentsOf: url)
            #expect(read.storagePrecision == .float16)
            for entry in model.parameters.layout.entries {
                let expected = try #require(model.parameters[entry.name])
                let found = try #require(read.parameters[entry.name])
                for (found, expected) in zip(found, expected) {
                    #expect(abs(found - expected) <= max(abs(expected) * 0x1p-11, 0x1p-25), "\(entry.name)")
                }
            }
            #expect(try read.write(to: url) == digest)
        }
    }

    @Test("The training record and the base are optional")
    func optionalParts() throws {
        let sample = try sampleModel()
        let model = ModelFile(
            network: sample.network, parameters: sample.parameters, labels: sample.labels,
            preprocessing: sample.preprocessing)
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try model.write(to: url)
            let read = try ModelFile(contentsOf: url)
            #expect(read.training == nil)
            #expect(read.baseDigest == nil)
        }
    }

    @Test("Equal content gives equal bytes", arguments: Safetensors.Precision.allCases)
    func reproducible(precision: Safetensors.Precision) throws {
        try withTemporaryFolder { folder in
            let (first, second) = (folder.appending(path: "first"), folder.appending(path: "second"))
            try sampleModel(precision: precision).write(to: first)
            try ModelFile(contentsOf: first).write(to: second)
            #expect(try Data(contentsOf: first) == Data(contentsOf: second))
        }
    }

    @Test("Saving parameters that are not finite is rejected and keeps the old file")
    func notFinite() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let model = try sampleModel()
            try model.write(to: url)
            let old = try Data(contentsOf: url)
            model.parameters["head.bias"] = [0, .nan]
            let error = #expect(throws: ModelFileError.self) { try model.write(to: url) }
            #expect(error?.problem == .notFinite(tensor: "head.bias"))
            #expect(error?.description.contains("lower learning rate") == true)
            #expect(try Data(contentsOf: url) == old)
        }
    }

    @Test("Saving parameters beyond float16 as float16 is rejected by name")
    func beyondFloat16() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let model = try sampleModel(precision: .float16)
            model.parameters["head.bias"] = [0, 1e6]
            let error = #expect(throws: SafetensorsError.self) { try model.write(to: url) }
            #expect(error?.problem == .exceedsFloat16(tensor: "head.bias", value: 1e6))
        }
    }

    @Test("Saving labels that do not match the network is rejected")
    func labels() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let sample = try sampleModel()
            func problem(_ labels: [String]) -> ModelFileError.Problem? {
                let model = ModelFile(
                    network: sample.network, parameters: sample.parameters, labels: labels,
                    preprocessing: sample.preprocessing)
                return #expect(throws: ModelFileError.self) { try model.write(to: url) }?.problem
            }
            #expect(problem(["one"]) == .labelCount(found: 1, outputs: 2))
            #expect(problem(["same", "same"]) == .duplicateLabel("same"))
            #expect(!FileManager.default.fileExists(atPath: url.path))
        }
    }

    @Test("Saving preprocessing that does not match the network input is rejected")
    func preprocessing() throws {
        let sample = try sampleModel()
        let model = ModelFile(
            network: sample.network, parameters: sample.parameters, labels: sample.labels,
            preprocessing: Preprocessing(width: 16, height: 12, channels: 1))
        try withTemporaryFolder { folder in
            let error = #expect(throws: ModelFileError.self) {
                try model.write(to: folder.appending(path: "model.imprint"))
            }
            let text = "preprocesses images to 12x16x1, but its network takes 16x16x3"
            #expect(error?.description.contains(text) == true)
        }
    }

    @Test("The accuracy of a record comes from the last epoch, on validation images if there are any")
    func accuracy() throws {
        var record = try #require(try sampleModel().training)
        #expect(record.accuracy == 0.9)
        record.history.removeLast()
        #expect(record.accuracy == 0.1)
        record.history.removeLast()
        #expect(record.accuracy == nil)
    }

    @Test("A record that kept the fitted head has its accuracy, and no kept epoch") func keepsInitialParameters() throws
    {
        let sample = try sampleModel()
        var kept = try #require(sample.training)
        (kept.keptEpoch, kept.startAccuracy) = (0, 0.95)
        let model = ModelFile(
            network: sample.network, parameters: sample.parameters, labels: sample.labels,
            preprocessing: sample.preprocessing, training: kept)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "model.imprint")
            try model.write(to: file)
            let record = try #require(ModelFile(contentsOf: file).training)
            #expect(
                record == kept && record.keepsInitialParameters && record.bestEpochMetrics == nil
                    && record.accuracy == 0.95)
        }
    }
}
