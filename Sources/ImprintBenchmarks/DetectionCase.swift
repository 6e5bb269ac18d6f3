internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintSynthesis

/// Logo detection in a synthetic photo of 299x532 pixels, from the image in memory to the detections, with random weights.
let logoDetection = BenchmarkCase(suite: .predict, name: "logospot-299x532") { options in
    let network = try Network.logoDetector()
    let model = ModelFile(
        network: network, parameters: try Parameters(network, seed: 1), labels: ["logo", "other"],
        preprocessing: .logoDetector, detector: .logoDetector(logos: [DetectorHead.Logo(label: "logo")]))
    return try model.detectionBenchmark(named: "logospot-299x532", options)
}

extension ModelFile {
    /// Measures the detection of logos in a synthetic photo of 299x532 pixels, from the image in memory to the detections.
    func detectionBenchmark(named name: String, _ options: BenchmarkOptions) throws -> BenchmarkResult {
        guard let detector else { preconditionFailure("the model is not a logo detector") }
        let photo = RasterImage.synthetic(width: 299, height: 532)
        let levels = detector.levels.map { AnySizeNetwork.level($0, of: photo, stride: detector.stride) }
        let model = parameters.quantization == nil ? try options.quantized(self, for: levels) : self
        let classifier = try ImageClassifier(model, threads: options.threads, precision: options.precision)
        let measurement = try Measurement(seconds: options.seconds) { _ = try classifier.classify(photo) }
        var result = BenchmarkResult(
            .predict, name, options, measurement.times(factor: 1e3), .milliseconds, of: measurement, batch: 1)
        result.precision = options.precision.resolved(for: model.parameters)
        return result
    }
}
