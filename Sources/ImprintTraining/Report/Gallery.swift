internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// The gallery of mistakes: photos with their saliency maps or detections.
struct Gallery {
    /// The maximum number of photos.
    static let limit = 24

    /// The longer side of a thumbnail, in pixels.
    private static let side = 160

    private let model: ModelFile
    private let workers: Workers

    init(_ model: ModelFile, workers: Workers) {
        self.model = model
        self.workers = workers
    }

    /// Returns the most confident mistakes of an evaluation; if there are none, the correct predictions with the lowest confidence.
    func html(_ evaluation: Evaluation) -> String {
        guard !evaluation.results.isEmpty else { return "" }
        let mistakes = evaluation.results.count { $0.predicted != $0.label }
        let shown =
            mistakes > 0
            ? evaluation.worstMistakes(Self.limit)
            : evaluation.leastConfident(Self.limit / 2)
        let introduction: String
        if mistakes == 0 {
            introduction =
                "No mistakes: all \(groupedCount(evaluation.results.count, "photo")) were classified correctly. These are the photos with "
                + "the lowest confidence."
        } else if mistakes > shown.count {
            introduction =
                "\(grouped(mistakes)) of \(groupedCount(evaluation.results.count, "photo")) were misclassified. These are the "
                + "\(shown.count) mistakes with the highest confidence."
        } else {
            introduction =
                "\(grouped(mistakes)) of \(groupedCount(evaluation.results.count, "photo")) \(mistakes == 1 ? "was" : "were") "
                + "misclassified. Mistakes with a high confidence come first."
        }
        let legend =
            model.head.seesWholeImage
            ? """
            Left: the photo as cropped for the network. Right: the saliency map of the predicted label, which shows how much the \
            confidence drops if a part of the photo is hidden.</p>
            <p class="ramp"><span>no drop</span><i style="background: \(HeatOverlay.gradient)"></i><span>largest drop</span></p>
            """
            : "Left: the photo with the best detection of the \(detectedLogo). Right: the detection, enlarged.</p>"
        return """
            <p>\(introduction) \(legend)
            <div class="gallery">
            \(figures(shown).joined(separator: "\n"))
            </div>
            """
    }

    /// The description of the logo whose detection is shown.
    private var detectedLogo: String {
        model.head.logos.count > 1 ? "predicted logo, or else of the true one" : "logo"
    }

    private func figures(_ results: [Evaluation.Result]) -> [String] {
        switch model.head {
        case .softmax, .sigmoid: withSaliencyMaps(results)
        case .detector(let detector): withDetections(results, DetectorPool(model, detector))
        // It has no evaluation of photos with one label each.
        case .centerPoints, .anchors: []
        }
    }

    /// Returns the photos with their saliency maps.
    private func withSaliencyMaps(_ results: [Evaluation.Result]) -> [String] {
        let photos = workers.parallelMap(results.count) { index in
            Result { () throws(ImageError) in
                (
                    input: try model.preprocessing.prepare(results[index].url),
                    shown: try Self.shown(model.preprocessing).prepare(results[index].url)
                )
            }
        }
        let occlusion = Result { try Occlusion(model, workers: workers) }
        return zip(results, photos).map { result, photo in
            do {
                let photo = try photo.get()
                let map = try occlusion.get().map(of: photo.input, label: result.predicted)
                return figure(result, try photoAndMap(photo.shown, map, result), remark(map))
            } catch {
                return figure(result, "<div class=\"missing\">\(isolated("\(error)"))</div>", nil)
            }
        }
    }

    /// Returns the photos with their detections.
    private func withDetections(_ results: [Evaluation.Result], _ detectors: DetectorPool) -> [String] {
        let pairs = workers.parallelMap(results.count) { index in
            Result { try detectedPair(results[index], detectors) }
        }
        return zip(results, pairs).map { result, pair in
            do {
                return figure(result, try pair.get(), nil)
            } catch {
                return figure(result, "<div class=\"missing\">\(isolated("\(error)"))</div>", nil)
            }
        }
    }

    private func detectedPair(_ result: Evaluation.Result, _ detectors: DetectorPool) throws -> String {
        let image = try PatchSource.read(result.url)
        let prediction = try detectors.detect(in: image)
        // If the photo has no logo and none was predicted, the detection with the highest confidence is shown.
        let best = model.labels.indices.filter { prediction.boxes[$0] != nil }.max {
            prediction.confidences[$0] < prediction.confidences[$1]
        }
        let box =
            prediction.boxes[result.predicted] ?? prediction.boxes[result.label]
            ?? best.flatMap { prediction.boxes[$0] } ?? NormalizedRectangle.all
        let scale = Float(Self.side) / Float(max(image.width, image.height))
        let small = CropAndScale.scaleFill.apply(
            image, width: max(Int(Float(image.width) * scale), 1),
            height: max(Int(Float(image.height) * scale), 1))
        let side = 2 * max(box.width * Float(image.width), box.height * Float(image.height), 1)
        let window = PatchWindow(
            x: (box.x + box.width / 2) * Float(image.width), y: (box.y + box.height / 2) * Float(image.height),
            side: side)
        var part = RasterImage(width: Self.side, height: Self.side)
        try part.samples.withUnsafeMutableBufferPointer {
            try PatchSource(image).read(window, side: Self.side, into: $0)
        }
        let name = result.url.lastPathComponent
        let whole = try Thumbnail(small.framed(box)).html(alternative: "\(name), with the box of the detection")
        let enlarged = try Thumbnail(part).html(alternative: "the detection, enlarged")
        return "<div class=\"pair\">\(whole)\(enlarged)</div>"
    }

    /// Returns the preprocessing that crops a photo as for the network, but scales it to the size of a thumbnail.
    private static func shown(_ preprocessing: Preprocessing) -> Preprocessing {
        var thumbnail = preprocessing
        let longer = max(thumbnail.width, thumbnail.height)
        thumbnail.width = max(thumbnail.width * side / longer, 1)
        thumbnail.height = max(thumbnail.height * side / longer, 1)
        return thumbnail
    }

    private func photoAndMap(
        _ image: RasterImage, _ map: SaliencyMap, _ result: Evaluation.Result
    ) throws(ImageError) -> String {
        let photo = try Thumbnail(image).html(
            alternative: "\(result.url.lastPathComponent), as cropped for the network")
        // The overlay is grey and smooth, so a lower quality suffices.
        let overlay = try Thumbnail(HeatOverlay.draw(map, on: image), quality: 70)
            .html(alternative: "the same photo with the saliency map of \(map.label)")
        return "<div class=\"pair\">\(photo)\(overlay)</div>"
    }

    private func remark(_ map: SaliencyMap) -> String {
        let (before, after) = (
            wholePercent(Double(map.confidence)), wholePercent(Double(map.confidence - map.maximum))
        )
        return map.maximum < 0.005
            ? "No single part matters." : "Confidence with the brightest part hidden: \(before) → \(after)"
    }

    private func figure(_ result: Evaluation.Result, _ content: String, _ remark: String?) -> String {
        let labels = model.labels
        let confidence = Double(result.confidences[result.predicted])
        let (label, predicted) = (isolated(labels[result.label]), isolated(labels[result.predicted]))
        let line =
            result.predicted == result.label
            ? "<strong>\(label)</strong>, classified correctly (\(wholePercent(confidence)))"
            : "<strong>\(label)</strong>, misclassified as <strong>\(predicted)</strong> (\(wholePercent(confidence)))"
        let more = remark.map { "<p class=\"file\">\($0)</p>" } ?? ""
        return """
            <figure>\(content)<figcaption><p>\(line)</p>\(more)\
            <p class="file">\(isolated(result.url.lastPathComponent))</p></figcaption></figure>
            """
    }
}

extension RasterImage {
    /// Returns the image with a frame around a box, in black and white for contrast with any background.
    fileprivate func framed(_ box: NormalizedRectangle) -> RasterImage {
        var framed = self
        let (left, top) = (Int(box.x * Float(width)), Int(box.y * Float(height)))
        let (right, bottom) = (left + Int(box.width * Float(width)), top + Int(box.height * Float(height)))
        for (inset, sample) in [(0, UInt8(0)), (1, 255)] {
            let (rows, columns) = (
                (top + inset)...max(bottom - inset, top + inset), (left + inset)...max(right - inset, left + inset)
            )
            for y in rows {
                for x in columns
                where y == rows.lowerBound || y == rows.upperBound || x == columns.lowerBound || x == columns.upperBound
                {
                    guard (0..<width).contains(x), (0..<height).contains(y) else { continue }
                    for channel in 0..<3 { framed.samples[(y * width + x) * 3 + channel] = sample }
                }
            }
        }
        return framed
    }
}
