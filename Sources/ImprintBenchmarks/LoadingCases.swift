internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

extension BenchmarkCase {
    /// Creates a case that loads a model file from the disk cache and classifies a synthetic photo.
    static func loading(_ name: String, _ model: @escaping @Sendable () throws -> ModelFile) -> BenchmarkCase {
        BenchmarkCase(suite: .load, name: name) { options in
            let folder = FileManager.default.temporaryDirectory.appending(path: "imprint-bench-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: folder) }
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let file = folder.appending(path: "model.imprint")
            try model().write(to: file)
            return try loading(name, file, options)
        }
    }

    /// Creates a case that loads an existing model file and classifies a synthetic photo.
    static func loading(_ file: URL) -> BenchmarkCase {
        let name = file.lastPathComponent
        return BenchmarkCase(suite: .load, name: name) { options in try loading(name, file, options) }
    }

    private static func loading(_ name: String, _ file: URL, _ options: BenchmarkOptions) throws -> BenchmarkResult {
        let photo = RasterImage.synthetic(width: 320, height: 240)
        // Classifiers are released before the next run, so that deallocation is not measured.
        var classifiers: [ImageClassifier] = []
        let measurement = try Measurement(seconds: options.seconds, prepare: { classifiers.removeAll() }) {
            let classifier = try ImageClassifier(contentsOf: file, threads: options.threads)
            classifiers.append(classifier)
            _ = try classifier.classify(photo)
        }
        return BenchmarkResult(
            .load, name, options, measurement.times(factor: 1e3), .milliseconds, of: measurement, batch: 1)
    }

    /// Creates a case that loads an untrained model with a ready-made network.
    static func loading(_ name: String, network: String) -> BenchmarkCase {
        loading(name) { try .untrained(network) }
    }
}

extension ModelFile {
    /// Returns an untrained model with a ready-made network and 1000 labels.
    static func untrained(_ name: String) throws -> ModelFile {
        let network = try Network.named(name, labels: 1000)
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: (0..<1000).map { "\($0)" },
            preprocessing: Preprocessing(
                width: network.input.width, height: network.input.height, channels: network.input.channels))
    }
}

extension RasterImage {
    /// Returns a synthetic photo with pseudo-random samples.
    static func synthetic(width: Int, height: Int) -> RasterImage {
        RasterImage(
            width: width, height: height, channels: 3,
            samples: (0..<(width * height * 3)).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 13) })
    }
}
