internal import Imprint
internal import ImprintImages
internal import ImprintModel

/// A bounding box in pixels.
struct PixelBox: BoundingBox {
    let x: Double
    let y: Double
    let width: Double
    let height: Double

    /// Scales a box to the size of its photo.
    init(_ box: NormalizedRectangle, in photo: AnnotatedPhoto) {
        let (columns, rows) = (Double(photo.width), Double(photo.height))
        (x, y) = (Double(box.x) * columns, Double(box.y) * rows)
        (width, height) = (Double(box.width) * columns, Double(box.height) * rows)
    }

    /// Returns the intersection over union (IoU) of a detection with the box of an object.
    ///
    /// For a crowd it is the share of the detection that lies inside the crowd, as `bbIou` of cocoapi computes it.
    func iou(with object: PixelBox, isCrowd: Bool) -> Double {
        guard isCrowd else { return iou(with: object) }
        let common = intersection(with: object)
        return common > 0 ? common / (width * height) : 0
    }
}

/// The detections of one label in one photo, matched to the objects of the label at each IoU threshold.
///
/// The matching is `COCOeval.evaluateImg` of cocoapi. Detections of descending confidence each take the free object with the highest IoU.
/// Crowds come last, and a crowd remains free.
struct DetectionMatches {
    /// The IoU thresholds .50, .55 … .95, computed like NumPy's `linspace`, which cocoapi uses.
    static let iouThresholds: [Double] = {
        let step = (0.95 - 0.5) / 9
        return (0..<9).map { 0.5 + Double($0) * step } + [0.95]
    }()

    /// A set of IoU thresholds: bit `i` stands for `iouThresholds[i]`.
    typealias ThresholdSet = UInt16

    /// A detection with the result of its matching.
    struct Detection {
        /// The index in the detections of the photo.
        let index: Int
        let confidence: Float
        /// The thresholds at which the detection matches an object, and is a true positive.
        var hits: ThresholdSet = 0
        /// The thresholds at which the detection matches only a crowd, and counts neither as correct nor as wrong.
        var ignored: ThresholdSet = 0
    }

    /// An object that is not a crowd.
    struct Object {
        /// The index in the objects of the photo.
        let index: Int
        /// The confidence of the detection that matches the object at IoU .5; nil if no detection matches.
        var confidence: Float?
    }

    /// The index of the photo.
    let photo: Int
    /// The detections by descending confidence; detections with equal confidence keep their order.
    private(set) var detections: [Detection]
    /// The objects without crowds.
    private(set) var objects: [Object]

    /// Matches detections to objects.
    /// - Parameters:
    ///   - photo: The photo, and its index.
    ///   - objects: The indices of the label's objects in the photo, including crowds.
    ///   - detections: The indices of the label's detections in `candidates`.
    ///   - candidates: The detections in the photo.
    init(
        _ photo: (index: Int, annotated: AnnotatedPhoto), objects: [Int], detections: [Int],
        of candidates: [DetectedObject]
    ) {
        let annotated = photo.annotated
        // COCO sorts the ignored objects to the end: a detection prefers every object to a crowd.
        let single = objects.filter { !annotated.objects[$0].isCrowd }
        let targets = (single + objects.filter { annotated.objects[$0].isCrowd }).map {
            (box: PixelBox(annotated.objects[$0].box, in: annotated), isCrowd: annotated.objects[$0].isCrowd)
        }
        self.photo = photo.index
        self.objects = single.map { Object(index: $0) }
        // Swift's sort is stable, like the merge sort of NumPy.
        self.detections = detections.map { Detection(index: $0, confidence: candidates[$0].confidence) }
            .sorted { $0.confidence > $1.confidence }
        guard !targets.isEmpty else { return }
        let overlaps = self.detections.map { detection in
            let box = PixelBox(candidates[detection.index].box, in: annotated)
            return targets.map { box.iou(with: $0.box, isCrowd: $0.isCrowd) }
        }
        for (bit, threshold) in Self.iouThresholds.enumerated() {
            match(overlaps, areCrowds: targets.map(\.isCrowd), bit: bit, threshold: threshold)
        }
    }

    /// Matches all detections at one threshold.
    /// - Parameters:
    ///   - overlaps: The IoU of each detection with each object, crowds last.
    ///   - areCrowds: Whether each object is a crowd.
    ///   - bit: The index of the threshold.
    ///   - threshold: The minimum IoU of a match.
    private mutating func match(_ overlaps: [[Double]], areCrowds: [Bool], bit: Int, threshold: Double) {
        var isTaken = [Bool](repeating: false, count: areCrowds.count)
        for (index, overlaps) in overlaps.enumerated() {
            var best = min(threshold, 1 - 1e-10)
            var match: Int?
            for (object, overlap) in overlaps.enumerated() {
                if isTaken[object] && !areCrowds[object] { continue }
                // Only crowds follow, and the detection already matches an object.
                if let match, !areCrowds[match], areCrowds[object] { break }
                // Of objects with equal IoU, the last one counts, as in cocoapi. NaN never matches.
                guard overlap >= best else { continue }
                (best, match) = (overlap, object)
            }
            guard let match else { continue }
            isTaken[match] = true
            if areCrowds[match] {
                detections[index].ignored |= 1 << bit
            } else {
                detections[index].hits |= 1 << bit
                if bit == 0 { objects[match].confidence = detections[index].confidence }
            }
        }
    }
}

/// The detections of one label in all photos, ranked by confidence to compute the average precision.
struct DetectionRanking {
    /// The maximum number of detections of a label in one photo that count.
    static let maximumDetections = 100

    /// The parts of a detection that the metrics need.
    private struct Entry {
        let photo: Int
        let confidence: Float
        let hits: DetectionMatches.ThresholdSet
        let ignored: DetectionMatches.ThresholdSet
    }

    private let entries: [Entry]
    /// The number of objects of each photo that has detections or objects.
    private let objectCounts: [(photo: Int, count: Int)]
    /// The number of objects, without crowds.
    let objectCount: Int

    /// - Parameter matches: The matches of each photo that has detections or objects, in the order of the photos.
    init(_ matches: [DetectionMatches]) {
        objectCounts = matches.map { ($0.photo, $0.objects.count) }
        objectCount = objectCounts.reduce(0) { $0 + $1.count }
        // Detections with equal confidence stay in the order of the photos.
        entries = matches.flatMap { match in
            match.detections.prefix(Self.maximumDetections).map {
                Entry(photo: match.photo, confidence: $0.confidence, hits: $0.hits, ignored: $0.ignored)
            }
        }.sorted { $0.confidence > $1.confidence }
    }

    /// The precision–recall curve at IoU .5 by ascending confidence thresholds, or nil if there are no objects.
    ///
    /// A detection of a crowd counts neither as correct nor as wrong. Detections of equal confidence share a point.
    var precisionRecallCurve: [TrainingRecord.PrecisionRecallPoint]? {
        guard objectCount > 0 else { return nil }
        let counted = entries.filter { $0.ignored & 1 == 0 }
        var points: [TrainingRecord.PrecisionRecallPoint] = []
        var hits = 0
        for (index, entry) in counted.enumerated() {
            hits += Int(entry.hits & 1)
            guard index + 1 == counted.count || counted[index + 1].confidence != entry.confidence else { continue }
            points.append(
                TrainingRecord.PrecisionRecallPoint(
                    threshold: Double(entry.confidence), precision: Double(hits) / Double(index + 1),
                    recall: Double(hits) / Double(objectCount)))
        }
        return points.reversed()
    }

    /// Returns the average precision at an IoU threshold, or nil if there are no objects.
    ///
    /// It is the mean of the interpolated precision at the recalls 0, .01 … 1, as in `COCOeval.accumulate` of cocoapi.
    /// - Parameters:
    ///   - threshold: The index of the IoU threshold.
    ///   - weights: How often each photo counts, or nil if each counts once.
    func averagePrecision(threshold: Int, weights: [Int]? = nil) -> Double? {
        func weight(_ photo: Int) -> Int { weights?[photo] ?? 1 }
        let positives = Double(objectCounts.reduce(0) { $0 + weight($1.photo) * $1.count })
        guard positives > 0 else { return nil }
        // Only true positives raise the recall, and after a false positive the precision is lower than before it. Therefore the curve omits
        // the points of other detections.
        var curve: [(recall: Double, precision: Double)] = []
        var (hits, errors) = (0, 0)
        for entry in entries {
            let weight = weight(entry.photo)
            guard weight > 0, (entry.ignored >> threshold) & 1 == 0 else { continue }
            guard (entry.hits >> threshold) & 1 == 1 else {
                errors += weight
                continue
            }
            hits += weight
            // Like cocoapi, adds the smallest step after 1 to the denominator.
            let precision = Double(hits) / (Double(errors) + Double(hits) + 1.0.ulp)
            curve.append((Double(hits) / positives, precision))
        }
        // The precision at a recall is the highest one at this or a higher recall.
        for index in curve.indices.dropFirst().reversed() where curve[index].precision > curve[index - 1].precision {
            curve[index - 1].precision = curve[index].precision
        }
        var (sum, index) = (0.0, 0)
        for step in 0...100 {
            let recall = step == 100 ? 1 : Double(step) * 0.01
            while index < curve.count, curve[index].recall < recall { index += 1 }
            guard index < curve.count else { break }
            sum += curve[index].precision
        }
        return sum / 101
    }
}
