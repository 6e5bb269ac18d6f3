internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages

/// The gallery of a detector's mistakes: missed objects and false positives, with their boxes.
struct DetectionGallery {
    /// The maximum number of mistakes.
    static let limit = 24
    /// The maximum number of boxes of each kind in a picture.
    private static let boxLimit = 50
    /// The longer side of a picture, in pixels.
    private static let side = 240

    private let evaluation: DetectionEvaluation
    private let workers: Workers

    init(_ evaluation: DetectionEvaluation, workers: Workers) {
        (self.evaluation, self.workers) = (evaluation, workers)
    }

    /// A missed object or a false positive.
    private struct Mistake {
        let photo: AnnotatedPhoto
        let box: NormalizedRectangle
        /// The description as HTML.
        let text: String
    }

    /// Returns the worst mistakes: half of them missed objects and half false positives, if there are enough of both.
    ///
    /// Pooled detections of several models have no thresholds, so their mistakes are unknown, and the result is empty.
    func html() -> String {
        let (metrics, total) = (evaluation.metrics, evaluation.operatingPoint.total)
        guard evaluation.thresholds.count == metrics.labels.count else { return "" }
        let missed = metrics.missedObjects(thresholds: evaluation.thresholds, limit: Self.limit).map(Self.mistake)
        let wrong = metrics.falsePositives(thresholds: evaluation.thresholds, limit: Self.limit).map(Self.mistake)
        guard !missed.isEmpty || !wrong.isEmpty else {
            return metrics.objectCount == 0
                ? ""
                : "<p>No mistakes: all objects (\(grouped(metrics.objectCount))) were found, without false positives.</p>"
        }
        let half = Self.limit / 2
        let missedShown = missed.prefix(max(half, Self.limit - wrong.count))
        let wrongShown = wrong.prefix(Self.limit - missedShown.count)
        let detections = Dictionary(
            metrics.predictions.map { ($0.photo.url, $0.detections) }, uniquingKeysWith: { first, _ in first })
        let shown = Array(missedShown) + Array(wrongShown)
        let figures = workers.parallelMap(shown.count) { index in
            figure(shown[index], detections[shown[index].photo.url] ?? [])
        }
        func section(_ title: String, _ total: Int, _ figures: ArraySlice<String>) -> String {
            guard !figures.isEmpty else { return "" }
            let more = total > figures.count ? " These are the \(figures.count) worst of \(grouped(total))." : ""
            return """
                <h3>\(title)</h3>
                <p class="advice">\(more.isEmpty ? groupedCount(total, "mistake") + "." : more)</p>
                <div class="gallery">
                \(figures.joined(separator: "\n"))
                </div>
                """
        }
        return """
            <p>Left: the photo. Right: the mistake, enlarged.</p>
            <p class="ramp"><span class="box-key mistake">the mistake</span> <span class="box-key">annotated object</span> \
            <span class="box-key detection">detection</span></p>
            \(section("Missed objects", total.falseNegatives, figures[..<missedShown.count]))
            \(section("False positives", total.falsePositives, figures[missedShown.count...]))
            """
    }

    private static func mistake(_ missed: DetectionMetrics.MissedObject) -> Mistake {
        let reason = missed.confidence.map {
            "found with a confidence of \(wholePercent(Double($0))), below the threshold"
        }
        return Mistake(
            photo: missed.photo, box: missed.object.box,
            text: "<strong>\(isolated(missed.object.label))</strong>, \(reason ?? "not found")")
    }

    private static func mistake(_ wrong: DetectionMetrics.FalsePositive) -> Mistake {
        let (box, photo) = (PixelBox(wrong.detection.box, in: wrong.photo), wrong.photo)
        let best = photo.objects.map {
            (object: $0, overlap: box.iou(with: PixelBox($0.box, in: photo), isCrowd: false))
        }
        .max { $0.overlap < $1.overlap }
        // The most overlapping object explains the mistake.
        let reason =
            if let best, best.overlap > 0.1 {
                best.object.label != wrong.detection.label && best.overlap >= 0.5
                    ? "on \(isolated(best.object.label))"
                    : best.overlap >= 0.5
                        ? "found twice"
                        : "IoU \(String(format: "%.2f", best.overlap)) with \(isolated(best.object.label))"
            } else {
                "no object here"
            }
        return Mistake(
            photo: photo, box: wrong.detection.box,
            text: "<strong>\(isolated(wrong.detection.label))</strong> "
                + "(\(wholePercent(Double(wrong.detection.confidence)))): \(reason)")
    }

    private func figure(_ mistake: Mistake, _ detections: [DetectedObject]) -> String {
        let name = mistake.photo.url.lastPathComponent
        let content: String
        do {
            content = try pictures(mistake, detections)
        } catch {
            content = "<div class=\"missing\">\(isolated("\(error)"))</div>"
        }
        return """
            <figure>\(content)<figcaption><p>\(mistake.text)</p><p class="file">\(isolated(name))</p></figcaption></figure>
            """
    }

    /// Returns the whole photo and the enlarged surroundings of the mistake, both with boxes.
    private func pictures(_ mistake: Mistake, _ detections: [DetectedObject]) throws -> String {
        let image = try PatchSource.read(mistake.photo.url)
        let (width, height) = (Float(image.width), Float(image.height))
        let scale = min(Float(Self.side) / max(width, height), 1)
        let small = CropAndScale.scaleFill.apply(
            image, width: max(Int(width * scale), 1), height: max(Int(height * scale), 1))
        let box = mistake.box
        // At least a few pixels, so that an enlarged picture of a tiny object shows its surroundings.
        let side = max(2 * max(box.width * width, box.height * height), 16)
        let window = PatchWindow(
            x: (box.x + box.width / 2) * width, y: (box.y + box.height / 2) * height, side: side)
        var part = RasterImage(width: Self.side, height: Self.side)
        try part.samples.withUnsafeMutableBufferPointer {
            try PatchSource(image).read(window, side: Self.side, into: $0)
        }
        let reached = detections.filter { detection in
            let index = evaluation.metrics.labels.firstIndex(of: detection.label)
            return index.map { Double(detection.confidence) >= evaluation.thresholds[$0] } ?? false
        }
        var boxes: [(box: NormalizedRectangle, style: String)] = []
        boxes += mistake.photo.objects.prefix(Self.boxLimit).map { ($0.box, "") }
        boxes += reached.prefix(Self.boxLimit).filter { $0.box != box }.map { ($0.box, "detection") }
        boxes.append((box, "mistake"))
        let scaled = boxes.map { (box: $0.box.scaled(width, height), style: $0.style) }
        let name = mistake.photo.url.lastPathComponent
        let whole = try Thumbnail(small, quality: 72).html(alternative: "\(name), with boxes")
        let enlarged = try Thumbnail(part, quality: 72).html(alternative: "the mistake, enlarged")
        let (left, top) = (window.x - side / 2, window.y - side / 2)
        let moved = scaled.map { (box: $0.box.moved(-left, -top), style: $0.style) }
        return "<div class=\"pair\"><span class=\"boxed\">\(whole)\(BoxOverlay.svg(scaled, (width, height)))</span>"
            + "<span class=\"boxed\">\(enlarged)\(BoxOverlay.svg(moved, (side, side)))</span></div>"
    }
}
