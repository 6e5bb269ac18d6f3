internal import Foundation
internal import ImprintModel
internal import ImprintNetwork

/// A prediction for a synthetic image or a batch of synthetic images.
struct PredictionCase {
    let name: String
    var batchSize = 1
    let network: @Sendable () throws -> Network

    static let all = [
        PredictionCase(name: "mobilenet-v1-224") { try Network.named("mobilenet-v1", labels: 1000).logits() },
        PredictionCase(name: "mobilenet-v1-224/batch-32", batchSize: 32) {
            try Network.named("mobilenet-v1", labels: 1000).logits()
        },
        PredictionCase(name: "mobilenet-v2-224") { try Network.named("mobilenet-v2", labels: 1000).logits() },
        PredictionCase(name: "efficientnet-lite0-224") {
            try Network.named("efficientnet-lite0", labels: 1000).logits()
        },
        PredictionCase(name: "resnet-50-224") { try Network.named("resnet-50", labels: 1000).logits() },
        PredictionCase(name: "conv3x3-net-299", network: stackedConvolutions),
        PredictionCase(name: "logonet-96") { try Network.named("logonet", labels: 2).logits() },
    ]

    var benchmark: BenchmarkCase {
        BenchmarkCase(suite: .predict, name: name) { options in
            let measurement = try forwardPasses(of: try network(), batchSize: batchSize, options)
            return BenchmarkResult(
                .predict, name, options, measurement.times(factor: 1e3), .milliseconds, of: measurement,
                batch: batchSize)
        }
    }

    /// Returns a network of 3x3 convolutions with batch normalization, ReLU and pooling, as in VGG, for 299x299 pixels.
    ///
    /// It has 5.8 billion multiplications, about as many as Inception v3.
    @Sendable private static func stackedConvolutions() throws -> Network {
        var net = NetworkBuilder(name: "conv3x3-net", input: TensorShape(height: 299, width: 299, channels: 3))
        func add(_ channels: Int, stride: Size2D = 1) {
            net.add(
                Convolution(
                    outputChannels: channels, kernelSize: 3, stride: stride, padding: .all(1), hasBias: false))
            net.add(BatchNormalization())
            net.add(ReLU())
        }
        add(32, stride: 2)
        for (block, (channels, layers)) in [(64, 1), (128, 2), (256, 3), (512, 3), (512, 1)].enumerated() {
            if block > 0 { net.add(MaxPool(kernelSize: 2)) }
            for _ in 0..<layers { add(channels) }
        }
        net.add(GlobalAveragePool())
        net.add(Dense(outputChannels: 1000))
        return try net.network()
    }
}

extension BenchmarkCase {
    /// Creates a case that predicts one image with the network of a model file, or detects logos in a photo.
    static func prediction(of file: URL) -> BenchmarkCase {
        let name = file.lastPathComponent
        return BenchmarkCase(suite: .predict, name: name) { options in
            let model = try ModelFile(contentsOf: file)
            guard model.detector == nil else { return try model.detectionBenchmark(named: name, options) }
            let measurement = try forwardPasses(
                of: model.network, parameters: model.parameters, batchSize: 1, options)
            var result = BenchmarkResult(
                .predict, name, options, measurement.times(factor: 1e3), .milliseconds, of: measurement, batch: 1)
            result.precision = options.precision.resolved(for: model.parameters)
            return result
        }
    }
}
