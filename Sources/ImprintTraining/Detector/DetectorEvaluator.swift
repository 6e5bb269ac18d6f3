internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// Runs a detector on whole photos, for validation, calibration and hard-negative mining.
struct DetectorEvaluator {
    /// The labels of the model, in order.
    let labels: [String]
    /// The labels of the logos: one heat map each.
    let logos: [String]
    let photos: DetectorPhotos
    let workers: Workers
    /// The maximum number of held-out composites for a calibration.
    let compositeCount: Int
    /// The detector head that defines the rules of detection; its logos are not used.
    var detector = DetectorHead.logoDetector(logos: [], regressesBoxes: true)
    var preprocessing = Preprocessing.logoDetector
    /// Called on the caller's thread after each portion of scanned images, with the number of finished images and of all images of the scan that
    /// this process reads; throws if the scan should end.
    ///
    /// If several processes train together, an error ends the scan in all of them, and so does `CancellationError`.
    var onPortion: (_ done: Int, _ of: Int) throws -> Void = { _, _ in }

    /// The number of images that a thread scans in a portion.
    private static let portionPerThread = 8

    /// Detects logos in images; the threads share the images.
    ///
    /// If too few photos can still be read, the first call that notices it throws the reason. Later calls skip the unreadable photos.
    /// - Returns: The detections of each logo in each image, or nil for an unreadable photo.
    /// - Throws: `ImageError` if too few photos can still be read, the errors of `onPortion`, and those of `PyramidScanner.scan(_:peaks:)`.
    func scan(
        _ sources: [PatchSource], _ network: Network, _ parameters: Parameters, peaks: Int
    ) throws -> [[PyramidScanner.Scan]?] {
        defer { SystemMemory.returnFreed() }
        let hadEnoughPhotos = photos.unreadable.problem == nil
        // Sorted by shape, so that each shape needs only one plan.
        let order = sources.indices.sorted {
            (sources[$0].width, sources[$0].height, $0) < (sources[$1].width, sources[$1].height, $1)
        }
        let knownCount = photos.unreadable.all.count
        var scans: [IndexedScans]
        do {
            scans = try scanPortions(of: order, in: sources, network, parameters, peaks: peaks)
        } catch {
            // The scan ends in all processes. A stopped run still makes a model, so all must know the same unreadable photos.
            if let processes = workers.processes { _ = photos.unreadable.share(with: processes, from: knownCount) }
            throw error
        }
        if let processes = workers.processes {
            // The logits of a diverged network are not finite.
            let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
            encoder.nonConformingFloatEncodingStrategy = .convertToString(
                positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
            decoder.nonConformingFloatDecodingStrategy = .convertFromString(
                positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
            let encoded = processes.allGather(Array(try encoder.encode(scans)))
            scans = try encoded.flatMap { try decoder.decode([IndexedScans].self, from: Data($0)) }
            // The process that scanned a photo knows that it is unreadable; all must.
            try processes.failTogether {
                for scan in scans where scan.scans == nil { try recordUnreadable(sources[scan.index]) }
            }
        }
        // All processes know the same unreadable photos now, so all of them throw, or none.
        if hadEnoughPhotos, let problem = photos.unreadable.problem { throw problem }
        return scans.sorted { $0.index < $1.index }.map(\.scans)
    }

    /// Detects logos in this process's share of the images, in portions.
    /// - Parameter order: The indices of all images, sorted by their shape.
    private func scanPortions(
        of order: [Int], in sources: [PatchSource], _ network: Network, _ parameters: Parameters, peaks: Int
    ) throws -> [IndexedScans] {
        // Each thread keeps its plans from one portion to the next.
        let scanners = (0..<workers.count).map { _ in
            PyramidScanner(
                network, parameters: parameters, preprocessing: preprocessing, detector: detector, shapes: 1)
        }
        let processes = workers.processes
        let (rank, processCount) = (processes?.rank ?? 0, processes?.count ?? 1)
        let own = stride(from: rank, to: order.count, by: processCount).map { order[$0] }
        // All processes have the same number of portions, even if their numbers of threads and images differ.
        let size = Self.portionPerThread * (processes?.minimum(workers.count) ?? workers.count)
        let largestShare = (order.count + processCount - 1) / processCount
        var all: [IndexedScans] = []
        for start in stride(from: 0, to: largestShare, by: size) {
            let end = min(start + size, own.count)
            all += try processes.failTogether { () throws -> [IndexedScans] in
                let parts = workers.parallelMap(workers.count) { worker in
                    Result { () -> [IndexedScans] in
                        try stride(from: start + worker, to: end, by: workers.count).map { turn in
                            let index = own[turn]
                            let scans = try image(of: sources[index]).map {
                                try scanners[worker].scan($0, peaks: peaks)
                            }
                            return IndexedScans(index: index, scans: scans)
                        }
                    }
                }
                let scans = try parts.flatMap { try $0.get() }
                if start < end { try onPortion(end, own.count) }
                return scans
            }
        }
        return all
    }

    /// The detections in an image; nil for an unreadable photo.
    private struct IndexedScans: Codable {
        let index: Int
        let scans: [PyramidScanner.Scan]?
    }

    /// Records that a photo is unreadable, with the reason if this process cannot read it either.
    private func recordUnreadable(_ source: PatchSource) throws(ImageError) {
        guard try image(of: source) != nil, let photo = source.photo else { return }
        photos.unreadable.add(SkippedImage(url: photo, reason: .unreadableInAnotherProcess(photo)))
    }

    /// Returns the image, or records that the photo is unreadable, and returns nil.
    private func image(of source: PatchSource) throws(ImageError) -> RasterImage? {
        if photos.unreadable.reason(for: source) != nil { return nil }
        do throws(ImageError) {
            return try source.image()
        } catch {
            guard let photo = source.photo else { throw error }
            photos.unreadable.add(SkippedImage(url: photo, reason: error))
            return nil
        }
    }

    /// Mines hard negatives: of the six strongest detections of each logo in each image, those away from all objects.
    ///
    /// A detection of several logos counts once.
    func mine(
        _ images: [GroundTruthImage], _ network: Network, _ parameters: Parameters
    ) throws -> [DetectorPatches.Detection] {
        let limit = 6
        return try scan(images.map(\.source), network, parameters, peaks: limit).enumerated().flatMap { index, scans in
            guard let scans else { return [DetectorPatches.Detection]() }
            return PyramidScanner.nonMaximumSuppression(scans.flatMap(\.peaks), limit * scans.count)
                .filter { !images[index].hasObject(at: $0) }
                .map { DetectorPatches.Detection(imageIndex: index, peak: $0) }
        }
    }

    /// Evaluates the network on the validation set, and calibrates its scores.
    /// - Returns: The result; nil without a validation set.
    func validate(
        _ network: Network, _ parameters: Parameters, _ patches: DetectorPatches
    ) throws -> DetectorObjective.Validation? {
        guard !photos.validation.isEmpty else { return nil }
        let scans = try scan(
            photos.validation.map(\.source), network, parameters,
            peaks: photos.hasBoxes ? Self.calibrationPeaks : 0)
        let (head, _, lossOfComposites) = try calibrated(network, parameters, patches, scans)
        let results = zip(photos.validation, scans).compactMap { photo, scans in
            scans.map {
                let confidences = head.confidences($0.map(\.score), in: labels)
                return Evaluation.Result(
                    url: photo.url, label: labels.firstIndex(of: label(of: photo, confidences)) ?? 0,
                    confidences: confidences)
            }
        }
        let validationURLs = Set(photos.validation.map(\.url))
        let skipped =
            photos.skippedValidation + photos.unreadable.all.filter { validationURLs.contains($0.url) }
        if results.isEmpty, let last = skipped.last { throw last.reason }
        let evaluation = Evaluation(labels: labels, results: results, skipped: skipped)
        return DetectorObjective.Validation(
            evaluation: evaluation, loss: lossOfComposites.map { (evaluation.logLoss + $0) / 2 } ?? evaluation.logLoss,
            head: head, averagePrecision: averagePrecision(head, scans))
    }

    /// Returns the mean average precision (mAP@.5:.95) on the annotated validation photos; nil if they have no objects.
    ///
    /// It covers the strongest `calibrationPeaks` peaks of each logo in each photo.
    private func averagePrecision(_ head: DetectorHead, _ scans: [[PyramidScanner.Scan]?]) -> Double? {
        let thresholds = head.logos.map { $0.threshold ?? 0.5 }
        let predictions = zip(photos.validation, scans).compactMap { photo, scans -> DetectionMetrics.Prediction? in
            guard let scans, let annotated = photo.annotated(logos) else { return nil }
            let size = (annotated.width, annotated.height)
            return (annotated, ObjectPeaks.objects(scans, head, thresholds: thresholds, size: size))
        }
        return DetectionMetrics(labels: logos, predictions: predictions).meanAveragePrecision
    }

    /// The number of peaks of each logo that the calibration of an annotated photo considers.
    private static let calibrationPeaks = 50

    /// Returns the label that is correct for a photo: of several logos in an annotated photo, the one with the highest confidence.
    private func label(of photo: DetectorPhotos.Item, _ confidences: [Float]) -> String {
        let shown = photo.logos.map { logos[$0] }
        let best = labels.indices.filter { shown.contains(labels[$0]) }.max { confidences[$0] < confidences[$1] }
        return best.map { labels[$0] } ?? photo.label
    }

    /// A photo with the detections of each logo in it.
    private struct ScannedPhoto {
        let photo: DetectorPhotos.Item
        let scans: [PyramidScanner.Scan]

        func scores(of logo: Int) -> [(hasLogo: Bool, score: Float)] { photo.scores(of: logo, in: scans[logo]) }

        func falseScores(of logo: Int) -> [Float] { photo.falsePeaks(of: logo, in: scans[logo]).map(\.score) }
    }

    /// Combines photos with their scans; leaves out unreadable photos.
    private func scannedPhotos(
        _ items: [DetectorPhotos.Item], _ scans: [[PyramidScanner.Scan]?]
    ) -> [ScannedPhoto] {
        zip(items, scans).compactMap { photo, scans in scans.map { ScannedPhoto(photo: photo, scans: $0) } }
    }

    /// Returns the detector head with calibrated outputs, and the labels of the logos without a calibration.
    ///
    /// Training photos calibrate a logo that no validation photo shows and that has no artwork for composites. A logo is not calibrated if there
    /// are no scores with it or none without it, but its limit still applies.
    ///
    /// The loss of composites is the mean of `PlattScaling.loss` over the logos that are calibrated on composites, because no photo shows them; nil
    /// without such logos.
    /// - Parameters:
    ///   - scans: The scans of the validation photos; empty to calibrate without them.
    ///   - limits: The limits of the false positives of each logo, which at least 20 photos can lower further; empty without limits.
    func calibrated(
        _ network: Network, _ parameters: Parameters, _ patches: DetectorPatches, _ scans: [[PyramidScanner.Scan]?],
        limits: [FalsePositiveLimit] = []
    ) throws -> (head: DetectorHead, uncalibratedLabels: [String], lossOfComposites: Double?) {
        func scanned(_ items: [DetectorPhotos.Item]) throws -> [ScannedPhoto] {
            let scans = try scan(items.map(\.source), network, parameters, peaks: Self.calibrationPeaks)
            return scannedPhotos(items, scans)
        }
        // Without validation photos, the calibration uses training photos.
        let usesTraining = photos.validation.isEmpty && photos.hasBoxes
        let main =
            try usesTraining
            ? scanned(trainingPhotos(of: Array(logos.indices))) : scannedPhotos(photos.validation, scans)
        let withoutScores = logosWithoutScores(in: main, patches)
        let others = try usesTraining || withoutScores.isEmpty ? [] : scanned(trainingPhotos(showing: withoutScores))
        let composites = HeldOutScores { logo, isPositive in
            let composites = try workers.processes.failTogether {
                try patches.heldOutComposites(compositeCount, of: logo, isPositive: isPositive)
            }
            return try scan(composites, network, parameters, peaks: 0).compactMap { $0?.map(\.score) }
        }
        var uncalibratedLabels: [String] = []
        var losses: [Double] = []
        let outputs = try logos.indices.map { logo in
            let added = withoutScores.contains(logo) ? others.filter { $0.photo.shows(logo) } : []
            let scores = (main + added).flatMap { $0.scores(of: logo) }
            let (positives, negatives) = try calibrationScores(logo, scores, composites)
            if positives.isEmpty || negatives.isEmpty { uncalibratedLabels.append(logos[logo]) }
            var curve = PlattScaling(positives: positives, negatives: negatives)
            if !scores.contains(where: \.hasLogo), !positives.isEmpty, !negatives.isEmpty {
                losses.append(curve.loss(positives: positives, negatives: negatives))
            }
            if !limits.isEmpty {
                var limit = limits[logo]
                let falseScores = main.map { $0.falseScores(of: logo) }
                // In a few photos, a single object without a box would decide.
                if falseScores.count >= FalsePositiveLimit.minimumImages { limit.add(falseScores) }
                curve = limit.applied(to: curve, positives: positives)
            }
            var threshold = threshold(scores, curve)
            // The limits already hold the false positives of a logo that is added to a model.
            if threshold == nil, limits.isEmpty, logos.count > 1 {
                threshold = self.threshold(try composites.scores(of: logo, among: logos.count), curve)
            }
            return DetectorHead.Logo(
                label: logos[logo], slope: Float(curve.slope), offset: Float(curve.offset), threshold: threshold)
        }
        var head = detector
        head.logos = outputs
        return (head, uncalibratedLabels, losses.isEmpty ? nil : losses.reduce(0, +) / Double(losses.count))
    }

    /// Returns the logos without a positive score in photos, and without composites.
    private func logosWithoutScores(in photos: [ScannedPhoto], _ patches: DetectorPatches) -> [Int] {
        logos.indices.filter { logo in
            !patches.compositors.contains { $0.logo == logo }
                && !photos.contains { $0.scores(of: logo).contains(where: \.hasLogo) }
        }
    }

    /// Returns training photos for the calibration of logos, balanced over the logos and photos without a logo.
    private func trainingPhotos(of logos: [Int]) -> [DetectorPhotos.Item] {
        photos.training.balanced(
            over: logos, count: max(Self.calibrationPhotos, Self.calibrationPhotosPerLogo * (logos.count + 1)))
    }

    /// Returns training photos that show logos, balanced over the logos.
    private func trainingPhotos(showing logos: [Int]) -> [DetectorPhotos.Item] {
        photos.training.filter { photo in logos.contains(where: photo.shows) }
            .balanced(over: logos, count: max(Self.calibrationPhotos, Self.calibrationPhotosPerLogo * logos.count))
    }

    /// Returns the minimum confidence of a detection with the highest F1; nil unless there are scores both with and without the logo.
    ///
    /// The thresholds of `Evaluation` are for the confidences of whole photos, which several logos share.
    private func threshold(_ scores: [(hasLogo: Bool, score: Float)], _ curve: PlattScaling) -> Double? {
        guard Set(scores.map(\.hasLogo)).count == 2 else { return nil }
        let logo = DetectorHead.Logo(label: "", slope: Float(curve.slope), offset: Float(curve.offset))
        return Ranking(scores.map { (logo.confidence($0.score), $0.hasLogo) }).threshold
    }

    /// The maximum number of training photos for a calibration of few logos.
    private static let calibrationPhotos = 200
    /// The number of training photos of each logo that raises the maximum for many logos.
    private static let calibrationPhotosPerLogo = 10

    /// Returns the scores for the Platt scaling of a logo.
    ///
    /// They are scores of photos and, if no photo shows the logo, also of held-out composites and hard negatives.
    private func calibrationScores(
        _ logo: Int, _ scores: [(hasLogo: Bool, score: Float)], _ composites: HeldOutScores
    ) throws -> (positives: [Float], negatives: [Float]) {
        var positives = scores.filter(\.hasLogo).map(\.score)
        var negatives = scores.filter { !$0.hasLogo }.map(\.score)
        if positives.isEmpty || negatives.isEmpty {
            negatives += try composites.scores(of: logo, isPositive: false).map { $0[logo] }
        }
        if positives.isEmpty { positives = try composites.scores(of: logo, isPositive: true).map { $0[logo] } }
        return (positives, negatives)
    }
}

extension DetectorPhotos.Item {
    /// Returns the photo with its objects, for an evaluation; nil if only its label is known.
    fileprivate func annotated(_ labels: [String]) -> AnnotatedPhoto? {
        objects.map { objects in
            AnnotatedPhoto(
                url: url, width: source.width, height: source.height,
                objects: objects.map {
                    AnnotatedPhoto.Object(label: labels[$0.logo], box: $0.box(in: source), isCrowd: $0.isCrowd)
                })
        }
    }

    /// Returns the scores of a photo for the calibration of a logo.
    ///
    /// A photo with a label has one score, the maximum. An annotated photo has one for each object, and one for the best false detection, so a
    /// calibration is possible even if all photos show the logo. Detections in crowds have no score.
    func scores(of logo: Int, in scan: PyramidScanner.Scan) -> [(hasLogo: Bool, score: Float)] {
        guard let objects, logos.contains(logo) else { return [(logos.contains(logo), scan.score)] }
        let found = objects.filter { $0.logo == logo && !$0.isCrowd }.compactMap { object in
            let one = GroundTruthImage(source: source, objects: [object])
            return scan.peaks.filter { one.hasObject(at: $0) }.map(\.score).max()
        }
        let others = falsePeaks(of: logo, in: scan).map(\.score).max()
        return found.map { (true, $0) } + (others.map { [(false, $0)] } ?? [])
    }

    /// Returns the peaks of a logo away from its objects; empty if the photo has the label of the logo, but no boxes.
    func falsePeaks(of logo: Int, in scan: PyramidScanner.Scan) -> [PyramidScanner.Peak] {
        guard let objects else { return logos.contains(logo) ? [] : scan.peaks }
        let image = GroundTruthImage(source: source, objects: objects)
        return scan.peaks.filter { !image.hasObject(at: $0, logo: logo) }
    }
}
