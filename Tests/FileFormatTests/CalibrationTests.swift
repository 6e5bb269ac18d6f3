import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@Suite struct CalibrationTests {
    /// Returns the confidences of `model` for one image, in the order of the labels.
    private func confidences(_ model: ModelFile) throws -> [Float] {
        let plan = try ExecutionPlan(
            model.network, parameters: model.parameters, options: ExecutionPlan.Options(batchSize: 1))
        for index in plan.input.indices { plan.input[index] = Float(index % 7) / 7 - 0.3 }
        plan.forward(count: 1)
        return Array(plan.output)
    }

    @Test(
        "The temperature is folded into the head's parameters, so every reader of the file gets divided logits",
        arguments: [0.25, 1, 3.5])
    func folded(temperature: Double) throws {
        let model = try sampleModel()
        let calibrated = try #require(try model.calibrated(temperature))
        // log p equals the logits up to a constant, which cancels in differences.
        let (before, after) = (try confidences(model).map(log), try confidences(calibrated).map(log))
        #expect(abs(Double(after[0] - after[1]) - Double(before[0] - before[1]) / temperature) < 1e-4)
        #expect(calibrated.labels == model.labels && calibrated.training == model.training)
        #expect(calibrated.baseDigest == model.baseDigest && calibrated.preprocessing == model.preprocessing)
        for entry in model.parameters.layout.entries {
            let (old, new) = (model.parameters[entry.name] ?? [], calibrated.parameters[entry.name] ?? [])
            let divisor = entry.node == "head" ? Float(temperature) : 1
            #expect(zip(old, new).allSatisfy { abs($0 / divisor - $1) <= abs($1) * 1e-6 }, "\(entry.name)")
        }
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "x.imprint")
            try calibrated.write(to: url)
            #expect(try confidences(ModelFile(contentsOf: url)) == confidences(calibrated))
        }
    }

    /// Returns a model with these layers after an average over 2x2 pixels.
    private func model(endingIn layers: [any Layer]) throws -> ModelFile {
        var builder = NetworkBuilder(name: "x", input: TensorShape(height: 4, width: 4, channels: 3))
        builder.add(AveragePool(kernelSize: 2), named: "mean")
        for (index, layer) in layers.enumerated() { builder.add(layer, named: "end\(index)") }
        let network = try builder.network()
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b", "c"],
            preprocessing: Preprocessing(width: 4, height: 4))
    }

    @Test("Only networks whose logits can be divided by a temperature are calibrated")
    func withoutHead() throws {
        let (pool, dense) = (GlobalAveragePool(), Dense(outputChannels: 3))
        let convolution = Convolution(outputChannels: 3, kernelSize: 1)
        let unfit: [[any Layer]] = [
            [pool, Softmax()], [pool, dense], [pool, dense, ReLU6(), Softmax()], [pool, dense, Sigmoid()],
            [convolution, BatchNormalization(), pool, Softmax()],
        ]
        for layers in unfit {
            let calibrated = try model(endingIn: layers).calibrated(2)
            #expect(calibrated == nil, "\(layers)")
        }
        let fit: [[any Layer]] = [
            [pool, dense, Softmax()], [pool, Dense(outputChannels: 3, hasBias: false), Softmax()],
            [convolution, pool, Softmax()],
        ]
        for layers in fit {
            let calibrated = try model(endingIn: layers).calibrated(2)
            #expect(calibrated != nil, "\(layers)")
        }
    }

    @Test("The temperature divides the logits of a network that ends in a convolution, ReLU and an average")
    func withoutDenseHead() throws {
        let model = try model(endingIn: [
            Convolution(outputChannels: 3, kernelSize: 1), ReLU(), Dropout(), GlobalAveragePool(), Softmax(),
        ])
        // All outputs of the convolution are positive, so ReLU does not make the logits equal.
        model.parameters["end0.bias"] = [20, 21, 23]
        let calibrated = try #require(try model.calibrated(2))
        let (before, after) = (try confidences(model).map(log), try confidences(calibrated).map(log))
        #expect(before[0] < before[2] - 1)
        for label in 1..<3 { #expect(abs((after[0] - after[label]) - (before[0] - before[label]) / 2) < 1e-4) }
    }

    @Test("A training record without thresholds and calibration, as older versions wrote it, is readable")
    func olderRecord() throws {
        let record = try #require(try sampleModel().training)
        let encoder = JSONEncoder()
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        var object = try #require(
            try JSONSerialization.jsonObject(with: encoder.encode(record)) as? [String: Any])
        #expect(object.removeValue(forKey: "thresholds") != nil)
        #expect(object.removeValue(forKey: "calibration") != nil)
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        let older = try decoder.decode(
            TrainingRecord.self, from: JSONSerialization.data(withJSONObject: object))
        #expect(older.thresholds == nil && older.calibration == nil)
        #expect(older.precisionRecall == record.precisionRecall && older.history == record.history)
    }
}
