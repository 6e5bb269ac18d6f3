import Foundation
import ImprintImages
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintTraining

/// Training of a detector with a pretrained backbone.
@Suite struct BackboneTrainingTests {
    /// Returns a classifier with random parameters.
    private static func base(_ name: String, channels: Int = 3) throws -> ModelFile {
        let network = try Network.named(name, labels: 4, width: 0.25)
        var preprocessing = Preprocessing(width: network.input.width, height: network.input.height, channels: channels)
        (preprocessing.mean, preprocessing.scale) =
            channels == 3 ? ([120, 110, 100], [0.01, 0.02, 0.03]) : ([120], [0.01])
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 9), labels: ["a", "b", "c", "d"],
            preprocessing: preprocessing)
    }

    private static func train(
        _ base: ModelFile?, in folder: URL, steps: Int = 1, threads: Int = 2
    ) throws -> TrainingResult {
        var configuration = boxConfiguration(steps: steps)
        configuration.base = base
        configuration.threads = threads
        return try DetectorTrainer(
            annotations: try annotatedFramesAndDiscs(in: folder, count: 12, seed: 1),
            configuration: configuration
        ).train(onEvent: { _ in }, shouldStop: { false })
    }

    @Test("A detector starts from the parameters of its backbone, and trains them with a lower learning rate")
    func start() throws {
        try withTemporaryFolder { folder in
            let base = try Self.base("mobilenet-v2")
            let model = try Self.train(base, in: folder).model
            #expect(model.baseDigest == (try base.digest ?? base.tensorDigest()))
            #expect(model.preprocessing.mean == [120, 110, 100] && model.preprocessing.scale == [0.01, 0.02, 0.03])
            #expect((model.preprocessing.width, model.preprocessing.height) == (96, 96))
            let names = Set(base.network.nodes.map(\.name))
            let kept = model.parameters.layout.entries.filter { names.contains($0.node) }
            #expect(kept.count > 20)
            for entry in kept where entry.parameter.role == .weight {
                let (before, after) = try (
                    #require(base.parameters[entry.name]), #require(model.parameters[entry.name])
                )
                // Each of the two steps of AdamW changes a parameter by about its learning rate.
                let change = zip(before, after).map { abs($0 - $1) }.max() ?? .infinity
                #expect(change < 2 * 0.3 * 3e-3 * 1.1, "\(entry.name)")
            }
        }
    }

    @Test("The number of threads does not change a detector with a backbone") func threads() throws {
        try withTemporaryFolder { folder in
            let base = try Self.base("logonet")
            let models = try [1, 2].map { try Self.train(base, in: folder, steps: 3, threads: $0).model }
            #expect(try models[0].tensorDigest() == models[1].tensorDigest())
        }
    }

    @Test("A detector with a backbone finds the objects of new photos") func detection() throws {
        try withTemporaryFolder { folder in
            var configuration = boxConfiguration(steps: 120)
            configuration.base = try Self.base("logonet")
            let result = try DetectorTrainer(
                annotations: try annotatedFramesAndDiscs(in: folder, count: 45, seed: 1),
                configuration: configuration
            ).train(onEvent: { _ in }, shouldStop: { false })
            let test = try annotatedFramesAndDiscs(in: folder, count: 30, seed: 2)
            let evaluation = try ImageClassifier(result.model).evaluate(on: test)
            #expect((evaluation.metrics.meanAveragePrecision50 ?? 0) > 0.8)
        }
    }

    @Test("The base model is part of the fingerprint of a run") func fingerprint() throws {
        try withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder, count: 6, seed: 1)
            let fingerprints = try [nil, Self.base("logonet"), Self.base("mobilenet-v2")].map { base in
                var configuration = boxConfiguration(steps: 1)
                configuration.base = base
                return try DetectorTask(
                    artwork: [:], photos: nil, annotations: annotations, backgrounds: nil, configuration: configuration
                ).fingerprint["base model"]
            }
            #expect(fingerprints[0] == nil && Set(fingerprints).count == 3)
        }
    }

    @Test("A network that cannot be a backbone is an error", arguments: ["mobilenet-v3-small", "lenet"])
    func unsuitable(name: String) throws {
        try withTemporaryFolder { folder in
            let base = try Self.base(name, channels: name == "lenet" ? 1 : 3)
            #expect(throws: ImprintError.unsupportedBackbone(network: name)) { try Self.train(base, in: folder) }
        }
    }
}
