internal import ImprintImages
package import ImprintModel

/// The selection of detected objects from the peaks of all logos.
package enum ObjectPeaks {
    /// A peak of one logo: its confidence and its box.
    struct Candidate {
        let confidence: Float
        let box: PyramidScanner.Peak.Box
    }

    /// An object: the index of its logo, its confidence and its box.
    struct Object {
        let logo: Int
        let confidence: Float
        let box: PyramidScanner.Peak.Box
    }

    /// A box and similar boxes that it suppresses.
    ///
    /// Neighbouring positions and pyramid levels see the same object, and the mean of their boxes is more accurate than the best box
    /// (Solovyev et al., "Weighted boxes fusion", 2021).
    private struct Cluster {
        let best: PyramidScanner.Peak.Box
        let confidence: Float
        private var sum: PyramidScanner.Peak.Box
        private var weight: Float

        init(_ box: PyramidScanner.Peak.Box, _ confidence: Float) {
            (best, self.confidence, weight) = (box, confidence, 0)
            sum = PyramidScanner.Peak.Box(x: 0, y: 0, width: 0, height: 0)
            add(box, weight: confidence)
        }

        mutating func add(_ box: PyramidScanner.Peak.Box, weight: Float) {
            self.weight += weight
            sum.x += weight * box.x
            sum.y += weight * box.y
            sum.width += weight * box.width
            sum.height += weight * box.height
        }

        /// The mean of the boxes, weighted by their confidences.
        var mean: PyramidScanner.Peak.Box {
            PyramidScanner.Peak.Box(
                x: sum.x / weight, y: sum.y / weight, width: sum.width / weight, height: sum.height / weight)
        }
    }

    /// Returns the objects that a detector finds in an image by descending confidence, including those below the thresholds.
    /// - Parameters:
    ///   - thresholds: The minimum confidence of each logo.
    ///   - size: The width and height of the image.
    package static func objects(
        _ scans: [PyramidScanner.Scan], _ detector: DetectorHead, thresholds: [Double], size: (width: Int, height: Int)
    ) -> [DetectedObject] {
        objects(scans, detector, thresholds: thresholds).map { object in
            DetectedObject(
                label: detector.logos[object.logo].label, confidence: object.confidence,
                box: object.box.normalized(width: size.width, height: size.height))
        }.filter { $0.box.width > 0 && $0.box.height > 0 }
    }

    /// Returns the objects of a detector by descending confidence, with boxes in pixels of the image.
    /// - Parameter thresholds: The minimum confidence of each logo.
    static func objects(
        _ scans: [PyramidScanner.Scan], _ detector: DetectorHead, thresholds: [Double]
    ) -> [Object] {
        let candidates = scans.enumerated().map { logo, scan in
            scan.peaks.sorted { $0.score > $1.score }.lazy.map { peak in
                Candidate(confidence: detector.logos[logo].confidence(peak.score), box: box(of: peak, detector))
            }
        }
        return objects(candidates, thresholds: thresholds)
    }

    /// Returns the objects that matches of logos show, by descending confidence.
    ///
    /// The boxes of matches are less exact than those of a detector, so a match also suppresses less confident matches of the same logo that
    /// are partly inside it, or around it.
    /// - Parameter matches: The matches of each logo, by descending confidence.
    package static func objects(_ matches: [[DetectedObject]]) -> [DetectedObject] {
        let candidates = matches.map { matches in
            matches.lazy.map { match in
                let box = match.box
                return Candidate(
                    confidence: match.confidence,
                    box: .init(x: box.x, y: box.y, width: box.width, height: box.height))
            }
        }
        // All logos have the same minimum confidence, so an object is never suppressed by one below the minimum.
        let selected = objects(candidates, thresholds: matches.map { _ in 0 }, areMatches: true)
        return selected.map { object in
            DetectedObject(
                label: matches[object.logo][0].label, confidence: object.confidence,
                box: NormalizedRectangle(
                    x: object.box.x, y: object.box.y, width: object.box.width, height: object.box.height
                ).clippedToImage)
        }
    }

    /// Returns the objects by descending confidence, including those below the thresholds of their logos.
    ///
    /// An object suppresses less confident objects of the same logo inside its box, and objects of other logos with a similar box. But an
    /// object below the threshold of its logo never suppresses one that reaches its own. So the other objects do not affect the objects
    /// that reach their thresholds, and an evaluation still gets them.
    /// - Parameters:
    ///   - peaks: The peaks of each logo, by descending confidence. All boxes have the same unit.
    ///   - thresholds: The minimum confidence of each logo.
    ///   - areMatches: Whether the peaks are matches of artwork.
    static func objects(
        _ peaks: [some Sequence<Candidate>], thresholds: [Double], areMatches: Bool = false
    ) -> [Object] {
        func reachesThreshold(_ object: Object) -> Bool { Double(object.confidence) >= thresholds[object.logo] }
        var candidates: [Object] = []
        for (logo, peaks) in peaks.enumerated() {
            var clusters: [Cluster] = []
            for peak in peaks {
                guard peak.confidence >= ObjectSelection.minimumConfidence else { break }
                if let index = clusters.firstIndex(where: {
                    $0.best.iou(with: peak.box) > ObjectSelection.sameLogoOverlap
                }) {
                    if clusters[index].best.iou(with: peak.box) > ObjectSelection.averagedOverlap {
                        clusters[index].add(peak.box, weight: peak.confidence)
                    }
                } else if clusters.count < ObjectSelection.maximumCount {
                    clusters.append(Cluster(peak.box, peak.confidence))
                }
            }
            candidates += clusters.map { Object(logo: logo, confidence: $0.confidence, box: $0.mean) }
        }
        var objects: [Object] = []
        for (_, candidate) in candidates.enumerated().sorted(by: {
            ($1.element.confidence, $0.offset) < ($0.element.confidence, $1.offset)
        }) {
            let isReaching = reachesThreshold(candidate)
            let isSuppressed = objects.contains {
                (suppresses($0, candidate) || areMatches && suppressesMatch($0, candidate))
                    && (!isReaching || reachesThreshold($0))
            }
            if !isSuppressed { objects.append(candidate) }
        }
        return objects
    }

    /// Returns whether the box of an object makes a less confident one redundant.
    private static func suppresses(_ object: Object, _ weaker: Object) -> Bool {
        if object.logo == weaker.logo {
            return object.box.intersection(with: weaker.box)
                > ObjectSelection.sameLogoContainment * weaker.box.width * weaker.box.height
        }
        return object.box.iou(with: weaker.box) > ObjectSelection.otherLogoOverlap
    }

    /// Returns whether a match makes a less confident one of the same logo redundant, which is mostly inside or around it.
    private static func suppressesMatch(_ match: Object, _ weaker: Object) -> Bool {
        let (area, weakerArea) = (match.box.width * match.box.height, weaker.box.width * weaker.box.height)
        return match.logo == weaker.logo && weakerArea < ObjectSelection.largerMatchArea * area
            && match.box.intersection(with: weaker.box) > ObjectSelection.matchContainment * min(area, weakerArea)
    }

    /// Returns the box of a peak: the predicted box or, without box regression, a square of the typical size.
    static func box(of peak: PyramidScanner.Peak, _ detector: DetectorHead) -> PyramidScanner.Peak.Box {
        if let box = peak.box { return box }
        let side = peak.side * detector.span / Float(DetectorHead.patchSide)
        // The centre of the first pixel is (0, 0) in a peak, and (½, ½) in a box.
        let (left, top) = (peak.x + 0.5 - side / 2, peak.y + 0.5 - side / 2)
        return PyramidScanner.Peak.Box(x: left, y: top, width: side, height: side)
    }
}
