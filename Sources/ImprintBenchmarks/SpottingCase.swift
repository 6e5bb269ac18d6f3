internal import Imprint
internal import ImprintFormats
internal import ImprintImages
internal import ImprintNetwork

/// What a model that spots a logo takes for a made-up photo of 299x532 pixels, from the picture in memory to the observations.
///
/// It runs on one thread, however many there are: several photos share them.
let logoSpot = BenchmarkCase(suite: .predict, name: "logospot-299x532") { options in
    var options = options
    options.threads = 1
    let network = try Network.logospot()
    let classifier = try ImageClassifier(
        WeightsFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["logo", "other"],
            preprocessing: .logospot, spotting: .logospot(marks: [Spotting.Mark(label: "logo")])))
    let photo = Image.madeUp(width: 299, height: 532)
    let measurement = try Measurement(seconds: options.seconds) { _ = try classifier.classify(photo) }
    return BenchmarkResult(
        .predict, "logospot-299x532", options, measurement.times(factor: 1e3), .milliseconds, of: measurement, batch: 1)
}
