internal import ImprintModel

/// The selection of detected objects from the peaks of all heat maps.
enum ObjectPeaks {
    /// An object: the index of its logo, its confidence and its box in pixels of the image.
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

    /// Returns the objects by descending confidence, including those below the thresholds of their logos.
    ///
    /// An object suppresses less confident objects of the same logo inside its box, and those of other logos with a similar box. But an
    /// object below the threshold of its logo never suppresses one that reaches its own. So the other objects do not affect the objects
    /// that reach their thresholds, and an evaluation still gets them.
    /// - Parameter thresholds: The minimum confidence of each logo.
    static func objects(
        _ scans: [PyramidScanner.Scan], _ detector: DetectorHead, thresholds: [Double]
    ) -> [Object] {
        func reachesThreshold(_ object: Object) -> Bool { Double(object.confidence) >= thresholds[object.logo] }
        var candidates: [Object] = []
        for (logo, scan) in scans.enumerated() {
            var clusters: [Cluster] = []
            for peak in scan.peaks.sorted(by: { $0.score > $1.score }) {
                let confidence = detector.logos[logo].confidence(peak.score)
                guard confidence >= ObjectSelection.minimumConfidence else { break }
                let box = box(of: peak, detector)
                if let index = clusters.firstIndex(where: {
                    $0.best.overlap(with: box) > ObjectSelection.sameLogoOverlap
                }) {
                    if clusters[index].best.overlap(with: box) > ObjectSelection.averagedOverlap {
                        clusters[index].add(box, weight: confidence)
                    }
                } else if clusters.count < ObjectSelection.maximumCount {
                    clusters.append(Cluster(box, confidence))
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
                suppresses($0, candidate) && (!isReaching || reachesThreshold($0))
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
        return object.box.overlap(with: weaker.box) > ObjectSelection.otherLogoOverlap
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
