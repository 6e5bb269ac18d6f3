internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// The photos that the model was most wrong about, with what it looked at.
struct Gallery {
    /// How many photos are shown at most.
    static let limit = 24

    /// The longer side of a thumbnail, in pixels.
    private static let side = 160

    private let weights: ModelFile
    private let workers: Workers

    init(_ weights: ModelFile, workers: Workers) {
        self.weights = weights
        self.workers = workers
    }

    /// The mistakes of an evaluation, the surest first; if there are none, the right answers that were least sure.
    func html(_ evaluation: Evaluation) -> String {
        guard !evaluation.results.isEmpty else { return "" }
        let wrong = evaluation.results.count { $0.predicted != $0.label }
        let shown =
            wrong > 0
            ? evaluation.worstMistakes(Self.limit)
            : evaluation.leastCertain(Self.limit / 2)
        let introduction: String
        if wrong == 0 {
            introduction =
                "Not one: all \(counted(evaluation.results.count, "photo")) were classified rightly. These are the ones of which the "
                + "model was least certain."
        } else if wrong > shown.count {
            introduction =
                "\(grouped(wrong)) of \(counted(evaluation.results.count, "photo")) were classified wrongly; these are the \(shown.count) of "
                + "which the model was most certain."
        } else {
            introduction =
                "\(grouped(wrong)) of \(counted(evaluation.results.count, "photo")) \(wrong == 1 ? "was" : "were") classified wrongly, those "
                + "first of which the model was most certain."
        }
        let legend =
            weights.detector == nil
            ? """
            Left: the photo as it is cropped for the network. Right: what spoke for the model's answer, found by hiding one part after \
            another.</p>
            <p class="ramp"><span>changes nothing</span><i style="background: \(HeatOverlay.gradient)"></i><span>matters most</span></p>
            """
            : "Left: the photo, with the place that looks most like the mark\(ofWhich). Right: this place.</p>"
        return """
            <p>\(introduction) \(legend)
            <div class="gallery">
            \(figures(shown).joined(separator: "\n"))
            </div>
            """
    }

    /// Which mark is framed, if there are several.
    private var ofWhich: String {
        (weights.detector?.marks.count ?? 0) > 1 ? " that the model saw, or else of the one that is there" : ""
    }

    private func figures(_ results: [Evaluation.Result]) -> [String] {
        if let detector = weights.detector { return detected(results, DetectorPool(weights, detector)) }
        let photos = workers.parallelMap(results.count) { place in
            Result { () throws(ImageError) in
                (
                    prepared: try weights.preprocessing.prepare(results[place].url),
                    shown: try Self.shown(weights.preprocessing).prepare(results[place].url)
                )
            }
        }
        let occlusion = Result { try Occlusion(weights, workers: workers) }
        return zip(results, photos).map { result, photo in
            do {
                let photo = try photo.get()
                let map = try occlusion.get().map(of: photo.prepared, label: result.predicted)
                return figure(result, try pictures(photo.shown, map, result), remark(map))
            } catch {
                return figure(result, "<div class=\"missing\">\(isolated("\(error)"))</div>", nil)
            }
        }
    }

    /// Photos with the place that looks most like the mark.
    private func detected(_ results: [Evaluation.Result], _ detectors: DetectorPool) -> [String] {
        let pairs = workers.parallelMap(results.count) { place in
            Result { try detectedPair(results[place], detectors) }
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
        let picture = try PatchSource.read(result.url)
        let sight = try detectors.detect(in: picture)
        // Where no mark is there and none was seen, the likeliest was the closest.
        let likeliest = weights.labels.indices.filter { sight.boxes[$0] != nil }.max {
            sight.confidences[$0] < sight.confidences[$1]
        }
        let box =
            sight.boxes[result.predicted] ?? sight.boxes[result.label] ?? likeliest.flatMap { sight.boxes[$0] }
            ?? NormalizedRectangle.all
        let scale = Float(Self.side) / Float(max(picture.width, picture.height))
        let small = CropAndScale.scaleFill.apply(
            picture, width: max(Int(Float(picture.width) * scale), 1),
            height: max(Int(Float(picture.height) * scale), 1))
        let side = 2 * max(box.width * Float(picture.width), box.height * Float(picture.height), 1)
        let window = PatchWindow(
            x: (box.x + box.width / 2) * Float(picture.width), y: (box.y + box.height / 2) * Float(picture.height),
            side: side)
        var part = RasterImage(width: Self.side, height: Self.side)
        try part.samples.withUnsafeMutableBufferPointer {
            try PatchSource(picture).read(window, side: Self.side, into: $0)
        }
        let name = result.url.lastPathComponent
        let whole = try Thumbnail(small.framed(box)).html(
            alternative: "\(name), with the place that looks most like the mark")
        return "<div class=\"pair\">\(whole)\(try Thumbnail(part).html(alternative: "this place, larger"))</div>"
    }

    /// The rules that crop a photo as for the network, but to the size of a thumbnail.
    private static func shown(_ preprocessing: Preprocessing) -> Preprocessing {
        var rules = preprocessing
        let longer = max(rules.width, rules.height)
        rules.width = max(rules.width * side / longer, 1)
        rules.height = max(rules.height * side / longer, 1)
        return rules
    }

    private func pictures(
        _ image: RasterImage, _ map: SaliencyMap, _ result: Evaluation.Result
    ) throws(ImageError) -> String {
        let photo = try Thumbnail(image).html(
            alternative: "\(result.url.lastPathComponent), as cropped for the network")
        // Grey and smooth, it takes little even so.
        let overlay = try Thumbnail(HeatOverlay.draw(map, on: image), quality: 70)
            .html(alternative: "the same, with what spoke for \(map.label) glowing")
        return "<div class=\"pair\">\(photo)\(overlay)</div>"
    }

    private func remark(_ map: SaliencyMap) -> String {
        let (before, after) = (
            wholePercent(Double(map.confidence)), wholePercent(Double(map.confidence - map.greatest))
        )
        return map.greatest < 0.005
            ? "No single part matters." : "Brightest part hidden: \(before) → \(after)"
    }

    private func figure(_ result: Evaluation.Result, _ content: String, _ remark: String?) -> String {
        let labels = weights.labels
        let confidence = Double(result.confidences[result.predicted])
        let (shows, said) = (isolated(labels[result.label]), isolated(labels[result.predicted]))
        let line =
            result.predicted == result.label
            ? "<strong>\(shows)</strong>, and the model said so (\(wholePercent(confidence)))"
            : "<strong>\(shows)</strong>, but the model said <strong>\(said)</strong> (\(wholePercent(confidence)))"
        let more = remark.map { "<p class=\"file\">\($0)</p>" } ?? ""
        return """
            <figure>\(content)<figcaption><p>\(line)</p>\(more)\
            <p class="file">\(isolated(result.url.lastPathComponent))</p></figcaption></figure>
            """
    }
}

extension RasterImage {
    /// The picture with a frame around a part of it, dark and light so that it stands out from anything.
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
