import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// A small classifier, with numbers of every kind of parameter that differ from their initial ones.
func sampleWeights(
    labels: [String] = ["logo", "other"], precision: Safetensors.Precision = .float32
) throws -> ModelFile {
    let network = try Network.logonet(labels: labels.count, inputSize: 16, width: 0.1)
    let parameters = try Parameters(network, seed: 5)
    for entry in parameters.layout.entries {
        parameters.withValues(of: entry) { values in
            for place in values.indices { values[place] += Float(place) * 0x1p-20 }
        }
    }
    var preprocessing = Preprocessing(width: 16, height: 16, cropAndScale: .scaleFit)
    preprocessing.mean = [0.1, 127.5, 1e-7]  // numbers whose decimal form must come back exactly
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
        base: SHA256.hexadecimal(of: [1]), precision: precision)
}

@Suite struct WeightsFileTests {
    @Test("A file that is in memory is read as one on a disk is, and refused by its name where it is cut short")
    func memory() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let digest = try sampleWeights(precision: .float16).write(to: url)
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

    @Test("Everything comes back, float32 bit for bit")
    func float32() throws {
        let weights = try sampleWeights(labels: ["logo", "\"quoted\" / é 😀"])
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let digest = try weights.write(to: url)
            let read = try ModelFile(contentsOf: url)
            #expect(read.network == weights.network)
            #expect(read.labels == weights.labels)
            #expect(read.preprocessing == weights.preprocessing)
            #expect(read.training == weights.training)
            #expect(read.base == weights.base)
            #expect(read.precision == .float32)
            #expect(read.digest == digest)
            for entry in weights.parameters.layout.entries {
                let expected = try #require(weights.parameters[entry.name])
                let found = try #require(read.parameters[entry.name])
                #expect(found.map(\.bitPattern) == expected.map(\.bitPattern), "\(entry.name)")
            }
        }
    }

    /// The numbers of all parameters.
    private func numbers(_ weights: ModelFile) -> [UInt32] {
        weights.parameters.withValues { $0.map(\.bitPattern) }
    }

    @Test("Parameters stay in their file: it may be replaced or deleted, and does not change with them")
    func mapped() throws {
        let weights = try sampleWeights()
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try weights.write(to: url)
            let file = try Safetensors.File(contentsOf: url)
            #expect(file.mapped(weights.parameters.layout) != nil)
            let bytes = try Data(contentsOf: url)
            let read = try ModelFile(contentsOf: url)
            let name = try #require(weights.parameters.layout.entries.first?.name)
            read.parameters[name] = read.parameters[name]?.map { $0 + 1 }
            #expect(try Data(contentsOf: url) == bytes)
            let changed = numbers(read)
            #expect(changed != numbers(weights))
            try sampleWeights(labels: ["a", "b", "c"]).write(to: url)
            #expect(numbers(read) == changed)
            try FileManager.default.removeItem(at: url)
            #expect(numbers(read) == changed)
        }
    }

    @Test("Tensors in another order are read as well", arguments: [Safetensors.Precision.float32, .float16])
    func sorted(_ precision: Safetensors.Precision) throws {
        let weights = try sampleWeights(precision: precision)
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try weights.write(to: url)
            let expected = numbers(try ModelFile(contentsOf: url))
            let file = try Safetensors.File(contentsOf: url)
            let tensors = try file.header.tensors.map {
                Safetensors.Tensor(name: $0.name, shape: $0.shape, values: try file.values(of: $0))
            }
            try Safetensors.write(tensors, as: precision, to: url) { digest in
                file.header.metadata.merging(["imprint.digest": digest]) { $1 }
            }
            #expect(try Safetensors.File(contentsOf: url).mapped(weights.parameters.layout) == nil)
            #expect(numbers(try ModelFile(contentsOf: url)) == expected)
        }
    }

    @Test("Float16 comes back rounded, takes half the room, and stays the same from then on")
    func float16() throws {
        let weights = try sampleWeights(precision: .float16)
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let digest = try weights.write(to: url)
            let file = try Safetensors.File(contentsOf: url)
            #expect(file.header.tensors.allSatisfy { $0.elementType == .float16 })
            let read = try ModelFile(contentsOf: url)
            #expect(read.precision == .float16)
            for entry in weights.parameters.layout.entries {
                let expected = try #require(weights.parameters[entry.name])
                let found = try #require(read.parameters[entry.name])
                for (found, expected) in zip(found, expected) {
                    #expect(abs(found - expected) <= max(abs(expected) * 0x1p-11, 0x1p-25), "\(entry.name)")
                }
            }
            #expect(try read.write(to: url) == digest)
        }
    }

    @Test("Training record and base may be absent")
    func optionalParts() throws {
        let sample = try sampleWeights()
        let weights = ModelFile(
            network: sample.network, parameters: sample.parameters, labels: sample.labels,
            preprocessing: sample.preprocessing)
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try weights.write(to: url)
            let read = try ModelFile(contentsOf: url)
            #expect(read.training == nil)
            #expect(read.base == nil)
        }
    }

    @Test("Equal content gives equal bytes", arguments: Safetensors.Precision.allCases)
    func reproducible(precision: Safetensors.Precision) throws {
        try withTemporaryFolder { folder in
            let (first, second) = (folder.appending(path: "first"), folder.appending(path: "second"))
            try sampleWeights(precision: precision).write(to: first)
            try ModelFile(contentsOf: first).write(to: second)
            #expect(try Data(contentsOf: first) == Data(contentsOf: second))
        }
    }

    @Test("Parameters that are no numbers are refused when saving, and the old file stays")
    func notFinite() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let weights = try sampleWeights()
            try weights.write(to: url)
            let old = try Data(contentsOf: url)
            weights.parameters["head.bias"] = [0, .nan]
            let error = #expect(throws: ModelFileError.self) { try weights.write(to: url) }
            #expect(error?.problem == .notFinite(tensor: "head.bias"))
            #expect(error?.description.contains("lower learning rate") == true)
            #expect(try Data(contentsOf: url) == old)
        }
    }

    @Test("Parameters beyond float16 are refused by name when saving as float16")
    func beyondFloat16() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let weights = try sampleWeights(precision: .float16)
            weights.parameters["head.bias"] = [0, 1e6]
            let error = #expect(throws: SafetensorsError.self) { try weights.write(to: url) }
            #expect(error?.problem == .exceedsFloat16(tensor: "head.bias", value: 1e6))
        }
    }

    @Test("Labels that do not fit the network are refused when saving")
    func labels() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let sample = try sampleWeights()
            func problem(_ labels: [String]) -> ModelFileError.Problem? {
                let weights = ModelFile(
                    network: sample.network, parameters: sample.parameters, labels: labels,
                    preprocessing: sample.preprocessing)
                return #expect(throws: ModelFileError.self) { try weights.write(to: url) }?.problem
            }
            #expect(problem(["one"]) == .labelCount(found: 1, outputs: 2))
            #expect(problem(["same", "same"]) == .duplicateLabel("same"))
            #expect(!FileManager.default.fileExists(atPath: url.path))
        }
    }

    @Test("Preprocessing that does not make the network's input is refused when saving")
    func preprocessing() throws {
        let sample = try sampleWeights()
        let weights = ModelFile(
            network: sample.network, parameters: sample.parameters, labels: sample.labels,
            preprocessing: Preprocessing(width: 16, height: 12, channels: 1))
        try withTemporaryFolder { folder in
            let error = #expect(throws: ModelFileError.self) {
                try weights.write(to: folder.appending(path: "model.imprint"))
            }
            #expect(error?.description.contains("prepares images as 12x16x1 for a network that takes 16x16x3") == true)
        }
    }

    @Test("The accuracy of a record is the last epoch's, on validation images where there are any")
    func accuracy() throws {
        var record = try #require(try sampleWeights().training)
        #expect(record.accuracy == 0.9)
        record.history.removeLast()
        #expect(record.accuracy == 0.1)
        record.history.removeLast()
        #expect(record.accuracy == nil)
    }
}
