internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// Runs a detector over whole photos, for validation, calibration and mining.
struct DetectorEvaluator {
    /// The labels of the model, in order.
    let labels: [String]
    /// The labels of the logos: one heat map each.
    let logos: [String]
    let photos: DetectorPhotos
    let workers: Workers
    /// The largest number of new composites that a calibration is fitted to.
    let compositeCount: Int

    /// Scans pictures with some parameters; the threads share the pictures.
    /// - Returns: The detections of each logo in each picture; nil for a photo that can no longer be read.
    func scan(
        _ pictures: [PatchSource], _ network: Network, _ parameters: Parameters, peaks: Int
    ) throws -> [[PyramidScanner.Scan]?] {
        defer { SystemMemory.returnFreed() }
        // Shape by shape, so that each needs one plan.
        let order = pictures.indices.sorted {
            (pictures[$0].width, pictures[$0].height, $0) < (pictures[$1].width, pictures[$1].height, $1)
        }
        let parts = workers.parallelMap(workers.count) { worker in
            Result { () -> [(Int, [PyramidScanner.Scan]?)] in
                let scanner = PyramidScanner(
                    network, parameters: parameters, preprocessing: .logoDetector, detector: .logoDetector(marks: []),
                    shapes: 1)
                return try stride(from: worker, to: order.count, by: workers.count).map { turn in
                    let index = order[turn]
                    return (index, try image(of: pictures[index]).map { try scanner.scan($0, peaks: peaks) })
                }
            }
        }
        return try parts.flatMap { try $0.get() }.sorted { $0.0 < $1.0 }.map(\.1)
    }

    /// The picture; nil if it is a photo that can no longer be read.
    private func image(of picture: PatchSource) throws(ImageError) -> RasterImage? {
        if photos.unreadable.reason(for: picture) != nil { return nil }
        do throws(ImageError) {
            return try picture.image()
        } catch {
            try photos.unreadable.add(picture, error)
            return nil
        }
    }

    /// Evaluates the network on the validation set, and calibrates its scores.
    /// - Returns: The result; nil without a validation set.
    func validate(
        _ network: Network, _ parameters: Parameters, _ patches: DetectorPatches
    ) throws -> DetectorObjective.Validation? {
        guard !photos.validation.isEmpty else { return nil }
        let scans = try scan(photos.validation.map(\.picture), network, parameters, peaks: 0)
        let head = try head(network, parameters, patches, scans)
        let results = zip(photos.validation, scans).compactMap { photo, scans in
            scans.map {
                Evaluation.Result(
                    url: photo.url, label: labels.firstIndex(of: photo.label) ?? 0,
                    confidences: head.confidences($0.map(\.score), in: labels))
            }
        }
        let validationURLs = Set(photos.validation.map(\.url))
        let skipped =
            photos.skippedValidation + photos.unreadable.all.filter { validationURLs.contains($0.url) }
        if results.isEmpty, let last = skipped.last { throw last.reason }
        return DetectorObjective.Validation(
            evaluation: Evaluation(labels: labels, results: results, skipped: skipped), head: head)
    }

    /// The detector head with calibrated outputs.
    /// - Parameter scans: The scans of the validation photos; empty to calibrate on composites.
    func head(
        _ network: Network, _ parameters: Parameters, _ patches: DetectorPatches, _ scans: [[PyramidScanner.Scan]?]
    ) throws -> DetectorHead {
        let outputs = try logos.indices.map { logo in
            let scores = zip(photos.validation, scans).compactMap { photo, scans in
                scans.map { (isOwn: photo.mark == logo, score: $0[logo].score) }
            }
            let curve = try calibration(network, parameters, patches, logo, scores)
            return DetectorHead.Mark(label: logos[logo], slope: Float(curve.slope), offset: Float(curve.offset))
        }
        return .logoDetector(marks: outputs)
    }

    /// Fits the Platt scaling of a logo to validation photos; if none of them shows it, to new composites and hard negatives too.
    private func calibration(
        _ network: Network, _ parameters: Parameters, _ patches: DetectorPatches, _ logo: Int,
        _ scores: [(isOwn: Bool, score: Float)]
    ) throws -> PlattScaling {
        var with = scores.filter(\.isOwn).map(\.score)
        var without = scores.filter { !$0.isOwn }.map(\.score)
        func unseen(isPositive: Bool) throws -> [Float] {
            let pictures = try patches.unseen(compositeCount, of: logo, isPositive: isPositive)
            return try scan(pictures, network, parameters, peaks: 0).compactMap { $0?[logo].score }
        }
        if with.isEmpty || without.isEmpty { without += try unseen(isPositive: false) }
        if with.isEmpty { with = try unseen(isPositive: true) }
        return PlattScaling(with: with, without: without)
    }
}
