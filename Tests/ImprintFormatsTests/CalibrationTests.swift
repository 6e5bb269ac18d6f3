import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@Suite struct CalibrationTests {
    /// What `weights` compute for one image, in the order of the labels.
    private func confidences(_ weights: ModelFile) throws -> [Float] {
        let plan = try ExecutionPlan(
            weights.network, parameters: weights.parameters, options: ExecutionPlan.Options(batchSize: 1))
        for place in plan.input.indices { plan.input[place] = Float(place % 7) / 7 - 0.3 }
        plan.forward(count: 1)
        return Array(plan.output)
    }

    @Test("The temperature divides the logits, whatever reads the file", arguments: [0.25, 1, 3.5])
    func folded(temperature: Double) throws {
        let weights = try sampleWeights()
        let calibrated = try #require(try weights.calibrated(temperature))
        // log p is the logits but for a constant, which differences do not have.
        let (before, after) = (try confidences(weights).map(log), try confidences(calibrated).map(log))
        #expect(abs(Double(after[0] - after[1]) - Double(before[0] - before[1]) / temperature) < 1e-4)
        #expect(calibrated.labels == weights.labels && calibrated.training == weights.training)
        #expect(calibrated.base == weights.base && calibrated.preprocessing == weights.preprocessing)
        for entry in weights.parameters.layout.entries {
            let (old, new) = (weights.parameters[entry.name] ?? [], calibrated.parameters[entry.name] ?? [])
            let divisor = entry.node == "head" ? Float(temperature) : 1
            #expect(zip(old, new).allSatisfy { abs($0 / divisor - $1) <= abs($1) * 1e-6 }, "\(entry.name)")
        }
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "x.imprint")
            try calibrated.write(to: url)
            #expect(try confidences(ModelFile(contentsOf: url)) == confidences(calibrated))
        }
    }

    @Test("A network that does not end in a dense layer and a softmax is not calibrated")
    func withoutHead() throws {
        func weights(_ end: [any Layer]) throws -> ModelFile {
            var builder = NetworkBuilder(name: "x", input: TensorShape(height: 4, width: 4, channels: 3))
            builder.add(GlobalAveragePool(), named: "mean")
            for (place, layer) in end.enumerated() { builder.add(layer, named: "end\(place)") }
            let network = try builder.network()
            return ModelFile(
                network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b", "c"],
                preprocessing: Preprocessing(width: 4, height: 4))
        }
        #expect(try weights([Softmax()]).calibrated(2) == nil)
        #expect(try weights([Dense(outputChannels: 3)]).calibrated(2) == nil)
        #expect(try weights([Dense(outputChannels: 3), ReLU(), Softmax()]).calibrated(2) == nil)
        #expect(try weights([Dense(outputChannels: 3), Softmax()]).calibrated(2) != nil)
        #expect(try weights([Dense(outputChannels: 3, hasBias: false), Softmax()]).calibrated(2) != nil)
    }

    @Test("A record of a time without thresholds and calibration is still read")
    func olderRecord() throws {
        let record = try #require(try sampleWeights().training)
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
