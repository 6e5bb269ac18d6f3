internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintSynthesis

/// Logo detection in a synthetic photo of 299x532 pixels, from the image in memory to the detections.
///
/// It runs on one thread, because apps process several photos in parallel.
let logoDetection = BenchmarkCase(suite: .predict, name: "logospot-299x532") { options in
    var options = options
    options.threads = 1
    let network = try Network.logoDetector()
    let detector = DetectorHead.logoDetector(logos: [DetectorHead.Logo(label: "logo")])
    let photo = RasterImage.synthetic(width: 299, height: 532)
    let model = ModelFile(
        network: network, parameters: try Parameters(network, seed: 1), labels: ["logo", "other"],
        preprocessing: .logoDetector, detector: detector)
    let levels = detector.levels.map { AnySizeNetwork.level($0, of: photo, stride: detector.stride) }
    let classifier = try ImageClassifier(try options.quantized(model, for: levels), precision: options.precision)
    let measurement = try Measurement(seconds: options.seconds) { _ = try classifier.classify(photo) }
    return BenchmarkResult(
        .predict, "logospot-299x532", options, measurement.times(factor: 1e3), .milliseconds, of: measurement, batch: 1)
}
