internal import Foundation
internal import ImprintModel

// The selection of objects from the peaks of all pyramid levels, as in `ObjectPeaks` of Imprint. The axes are objects, logos and
// positions.

extension ONNXExporter {
    /// The maximum length of a suppression chain, in which each object suppresses the next one.
    private static let suppressionRounds = 8

    /// Objects, sorted by descending confidence.
    private struct Objects {
        /// The confidence, [objects].
        let confidences: String
        /// The index of the logo, [objects].
        let logos: String
        /// The left, top, right and bottom edges in pixels of the shrunk image, [objects, 4].
        let boxes: String
    }

    /// Adds the output `imageConfidences`: the softmax of the highest log-odds of each logo and of 0 for no logo.
    mutating func addImageConfidences(_ peaks: Peaks, _ detector: DetectorHead) {
        let highest = graph.node(
            "ReduceMax", [peaks.odds, graph.add("image.axes", [0, 2])], ["keepdims": .int(0)], named: "image.highest")
        let all = graph.node(
            "Concat", [highest, graph.add("image.noLogo", [Float(0)])], ["axis": .int(0)], named: "image.odds")
        let order = model.file.labels.map { label in
            detector.logos.firstIndex { $0.label == label } ?? detector.logos.count
        }
        let logits = graph.node("Gather", [all, graph.add("image.order", order)], named: "image.logits")
        graph.add("Softmax", [logits], to: DetectorOutput.imageConfidences.rawValue, ["axis": .int(0)])
    }

    /// Adds the outputs `boxes`, `confidences` and `labels`.
    mutating func addObjects(_ peaks: Peaks, _ detector: DetectorHead, photo: PyramidImage, shrunk: PyramidImage) {
        let objects = addAveragedObjects(peaks)
        // Maps edges to pixels of the photo.
        let factors = graph.node("Div", [photo.floatSides, shrunk.floatSides], named: "photo.factors")
        let order = graph.add("photo.order", [1, 0, 1, 0])
        let scale = graph.node("Gather", [factors, order], named: "photo.scale")
        let limits = graph.node("Gather", [photo.floatSides, order], named: "photo.limits")
        let scaled = graph.node("Mul", [objects.boxes, scale], named: "photo.boxes")
        let positive = graph.node("Max", [scaled, number("photo.zero", 0)], named: "photo.positive")
        let clipped = graph.node("Min", [positive, limits], named: "photo.clipped")
        let size = graph.node(
            "Sub", [edges(2..<4, of: clipped, named: "photo.end"), edges(0..<2, of: clipped, named: "photo.start")],
            named: "photo.size")
        let shortSide = graph.node(
            "ReduceMin", [size, graph.add("photo.axes", [1])], ["keepdims": .int(0)], named: "photo.shortSide")
        let isInside = graph.node("Greater", [shortSide, number("photo.none", 0)], named: "photo.isInside")
        let isObject = graph.node("And", [isInside, isLeading(objects, detector)], named: "photo.isObject")
        let labels = detector.logos.map { logo in model.file.labels.firstIndex(of: logo.label) ?? 0 }
        let names = graph.node("Gather", [graph.add("logo.labels", labels), objects.logos], named: "photo.labels")
        for (output, values) in [
            (DetectorOutput.boxes, clipped), (.confidences, objects.confidences), (.labels, names),
        ] {
            graph.add("Compress", [values, isObject], to: output.rawValue, ["axis": .int(0)])
        }
    }

    /// Adds non-maximum suppression, and the averaging of each box with similar boxes that it suppresses.
    private mutating func addAveragedObjects(_ peaks: Peaks) -> Objects {
        let boxes = graph.node("Transpose", [peaks.boxes], ["perm": .ints([0, 2, 1])], named: "peaks.corners")
        let minimum = ObjectSelection.minimumConfidence
        // The operator keeps scores above the threshold.
        let threshold = logf(minimum / (1 - minimum)).nextDown
        let selected = graph.node(
            "NonMaxSuppression",
            [
                boxes, peaks.odds, graph.add("suppression.count", [ObjectSelection.maximumCount]),
                graph.add("suppression.overlap", [ObjectSelection.sameLogoOverlap]),
                graph.add("suppression.threshold", [threshold]),
            ], named: "suppression.selected")
        let first = graph.add("axis.first", [0])
        let second = graph.add("axis.second", [1])
        let indices = columns(1..<3, of: selected, named: "suppression.indices")
        let odds = graph.node("Squeeze", [peaks.odds, first], named: "peaks.odds")
        let confidences = graph.node("Sigmoid", [odds], named: "peaks.confidences")
        let unsorted = graph.node("GatherND", [confidences, indices], named: "suppression.confidences")
        let count = graph.node("Shape", [unsorted], named: "suppression.objects")
        let (sorted, order) = (graph.unique("objects.confidences"), graph.unique("objects.order"))
        graph.add("TopK", [unsorted, count], to: [sorted, order])
        let sortedIndices = graph.node("Gather", [indices, order], named: "objects.indices")
        let (logos, positions) = (
            graph.node(
                "Squeeze", [columns(0..<1, of: sortedIndices, named: "objects.logo"), second], named: "objects.logos"),
            graph.node(
                "Squeeze", [columns(1..<2, of: sortedIndices, named: "objects.position"), second],
                named: "objects.positions")
        )
        let all = graph.node("Squeeze", [boxes, first], named: "peaks.boxes")
        let best = graph.node("Gather", [all, positions], named: "objects.best")

        // A peak belongs to the first object of its logo that suppresses it.
        let overlap = addOverlap(best, all, named: "cluster").overlap
        let near = isAbove(overlap, ObjectSelection.sameLogoOverlap, named: "cluster.isNear")
        let earlier = addEarlier(sameLogo(logos, named: "cluster"), named: "cluster.earlier")
        let owners = graph.node("MatMul", [earlier, floats(near)], named: "cluster.earlierOwners")
        let isFirst = graph.node("Less", [owners, number("cluster.half", 0.5)], named: "cluster.isFirst")
        let rows = graph.node("Gather", [confidences, logos], named: "cluster.confidences")
        let isPeak = graph.node(
            "GreaterOrEqual", [rows, number("cluster.minimum", minimum)], named: "cluster.isPeak")
        let similar = isAbove(overlap, ObjectSelection.averagedOverlap, named: "cluster.isSimilar")
        let isMember = graph.node(
            "And", [graph.node("And", [similar, isPeak], named: "cluster.isSimilarPeak"), isFirst],
            named: "cluster.isMember")
        let weights = graph.node("Where", [isMember, rows, number("cluster.zero", 0)], named: "cluster.weights")
        let sums = graph.node("MatMul", [weights, all], named: "cluster.sums")
        let total = graph.node("ReduceSum", [weights, second], named: "cluster.total")
        return Objects(
            confidences: sorted, logos: logos, boxes: graph.node("Div", [sums, total], named: "objects.boxes"))
    }

    /// Returns whether no object with a higher confidence suppresses an object, [objects].
    ///
    /// An object suppresses objects of the same logo inside its box, and objects of other logos with a similar box. But an object below the
    /// threshold of its logo does not suppress one that reaches the threshold of its own logo. A suppressed object does not suppress
    /// others, so the result is the same as with sequential suppression. Each round resolves one more link of a suppression chain.
    private mutating func isLeading(_ objects: Objects, _ detector: DetectorHead) -> String {
        let overlaps = addOverlap(objects.boxes, objects.boxes, named: "leading")
        let isSame = sameLogo(objects.logos, named: "leading")
        let inside = graph.node("Div", [overlaps.common, overlaps.firstArea], named: "leading.insideShare")
        let isInside = isAbove(inside, ObjectSelection.sameLogoContainment, named: "leading.isInside")
        let isSimilar = isAbove(overlaps.overlap, ObjectSelection.otherLogoOverlap, named: "leading.isSimilar")
        // ONNX Runtime does not implement `Where` for conditions as values.
        let isCovered = graph.node(
            "Or",
            [
                graph.node("And", [isSame, isInside], named: "leading.isContained"),
                graph.node(
                    "And", [graph.node("Not", [isSame], named: "leading.isDifferent"), isSimilar],
                    named: "leading.isDuplicate"),
            ], named: "leading.isCovered")
        let (half, axis) = (number("leading.half", 0.5), graph.add("leading.axis", [1]))
        let conflict = graph.node("And", [isCovered, mayPrecede(objects, detector)], named: "leading.conflict")
        let conflicts = addEarlier(conflict, named: "leading.earlierConflicts")
        var count = graph.node("ReduceSum", [conflicts, axis], named: "leading.count0")
        for round in 1..<Self.suppressionRounds {
            let leads = graph.node("Less", [count, half], named: "leading.leads\(round)")
            count = graph.node("MatMul", [conflicts, floats(leads)], named: "leading.count\(round)")
        }
        let leads = graph.node("Less", [count, half], named: "leading.leads")
        return graph.node("Squeeze", [leads, axis], named: "leading.isLeading")
    }

    /// Adds a matrix [objects, objects]: whether the thresholds let the object of a column suppress the object of a row.
    private mutating func mayPrecede(_ objects: Objects, _ detector: DetectorHead) -> String {
        let thresholds = detector.logos.map { Float(model.file.detectionThreshold(of: $0.label)) }
        let minima = graph.node(
            "Gather", [graph.add("threshold.values", thresholds), objects.logos], named: "threshold.minima")
        let reaches = graph.node("GreaterOrEqual", [objects.confidences, minima], named: "threshold.reaches")
        let fails = graph.node("Not", [reaches], named: "threshold.fails")
        let column = graph.node(
            "Unsqueeze", [reaches, graph.add("threshold.columns", [0])], named: "threshold.suppressing")
        let row = graph.node("Unsqueeze", [fails, graph.add("threshold.rows", [1])], named: "threshold.suppressed")
        return graph.node("Or", [column, row], named: "threshold.mayPrecede")
    }
}

// MARK: Boxes and matrices

extension ONNXExporter {
    /// The overlap of two lists of boxes.
    private struct Overlap {
        /// The area of the intersection, [first, second].
        let common: String
        /// The area of the boxes of the first list, [first, 1].
        let firstArea: String
        /// The intersection over union, [first, second].
        let overlap: String
    }

    /// Adds the overlap of boxes [first, 4] with boxes [second, 4].
    private mutating func addOverlap(_ first: String, _ second: String, named name: String) -> Overlap {
        let axes = [graph.add("\(name).firstAxis", [1]), graph.add("\(name).secondAxis", [0])]
        let last = graph.add("\(name).sides", [-1])
        var (starts, ends, areas): ([String], [String], [String]) = ([], [], [])
        for (boxes, axis, part) in [(first, axes[0], "\(name).first"), (second, axes[1], "\(name).second")] {
            let start = edges(0..<2, of: boxes, named: "\(part).start")
            let end = edges(2..<4, of: boxes, named: "\(part).end")
            let size = graph.node("Sub", [end, start], named: "\(part).size")
            let area = graph.node("ReduceProd", [size, last], ["keepdims": .int(0)], named: "\(part).area")
            starts.append(graph.node("Unsqueeze", [start, axis], named: "\(part).starts"))
            ends.append(graph.node("Unsqueeze", [end, axis], named: "\(part).ends"))
            areas.append(graph.node("Unsqueeze", [area, axis], named: "\(part).areas"))
        }
        let start = graph.node("Max", starts, named: "\(name).start")
        let end = graph.node("Min", ends, named: "\(name).end")
        let size = graph.node(
            "Relu", [graph.node("Sub", [end, start], named: "\(name).difference")], named: "\(name).size")
        let common = graph.node("ReduceProd", [size, last], ["keepdims": .int(0)], named: "\(name).common")
        let sum = graph.node("Add", areas, named: "\(name).sum")
        let union = graph.node("Sub", [sum, common], named: "\(name).union")
        return Overlap(
            common: common, firstArea: areas[0],
            overlap: graph.node("Div", [common, union], named: "\(name).overlap"))
    }

    /// Adds a slice of the columns of a matrix.
    private mutating func columns(_ range: Range<Int>, of matrix: String, named name: String) -> String {
        let bounds = [("from", range.lowerBound), ("to", range.upperBound), ("axis", 1)].map {
            graph.add("\(name).\($0.0)", [$0.1])
        }
        return graph.node("Slice", [matrix] + bounds, named: name)
    }

    /// Adds edges of boxes [objects, 4].
    private mutating func edges(_ range: Range<Int>, of boxes: String, named name: String) -> String {
        columns(range, of: boxes, named: name)
    }

    /// Adds whether two objects have the same logo, [objects, objects].
    private mutating func sameLogo(_ logos: String, named name: String) -> String {
        let column = graph.node("Unsqueeze", [logos, graph.add("\(name).rows", [1])], named: "\(name).column")
        let row = graph.node("Unsqueeze", [logos, graph.add("\(name).columns", [0])], named: "\(name).row")
        return graph.node("Equal", [column, row], named: "\(name).areSame")
    }

    /// Adds the part of a square matrix below the diagonal: 1 if the relation holds with an earlier object, otherwise 0.
    private mutating func addEarlier(_ relation: String, named name: String) -> String {
        let diagonal = graph.add("\(name).diagonal", [-1], shape: [])
        return graph.node("Trilu", [floats(relation), diagonal], ["upper": .int(0)], named: name)
    }

    private mutating func isAbove(_ values: String, _ limit: Float, named name: String) -> String {
        graph.node("Greater", [values, number("\(name).limit", limit)], named: name)
    }

    /// Adds the conversion of a condition to 0 and 1.
    private mutating func floats(_ condition: String) -> String {
        graph.node("Cast", [condition], ["to": .int(ONNXGraph.ElementType.float.rawValue)], named: "\(condition).float")
    }
}
