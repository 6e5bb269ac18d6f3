public import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintSynthesis

extension ArtworkMatcher {
    /// Returns a matcher that also compares photos with photos of its logos.
    ///
    /// A few photos help most if the logo looks unlike its artwork in them, for example because it is made of metal. The matcher finds the logo
    /// in each photo by its artwork. A photo in which its confidence is less than 0.5 is not used, because another part of the photo might be
    /// taken for the logo; crop it to the logo and its surroundings, and try again.
    /// - Parameter photos: Photos that show a logo, by label. Labels without artwork are ignored.
    /// - Returns: The matcher, and the photos that are not used.
    /// - Throws: `ImageError` if a photo cannot be read, `ImprintError.nonFiniteOutput` if a feature is not finite,
    ///   `ImprintError.outOfMemory`.
    public func adding(photos: [String: [URL]]) throws -> (matcher: ArtworkMatcher, unused: [URL]) {
        var waiting = labels.enumerated().flatMap { label, name in (photos[name] ?? []).map { (label: label, file: $0) }
        }
        var result = self
        while true {
            var artworks = result.artworks
            var unused: [(label: Int, file: URL)] = []
            for photo in waiting {
                let image = try ImageFile.decode(photo.file, coveringShortSide: Self.shortSideToDecode)
                    .flattenedOnWhite().converted(toChannels: 3)
                guard let (index, box) = try result.located(photo.label, in: image) else {
                    unused.append(photo)
                    continue
                }
                let artwork = artworks[index]
                let network = features.extractor(plans: artwork.parts.count, threads: workers.count)
                for (part, description) in artwork.parts.enumerated() {
                    let view = description.view(in: image, logo: box, border: Self.border)
                    artworks[index].templates[part].append(try features.template(view, network))
                }
            }
            result = ArtworkMatcher(artworks, of: result)
            // The photos that were added may help to find the logo in the others.
            if unused.count == waiting.count || unused.isEmpty { return (result, unused.map(\.file)) }
            waiting = unused
        }
    }

    /// Returns the artwork of a label that matches best and the box of the logo; nil if it is not found with a confidence of 0.5.
    private func located(_ label: Int, in image: RasterImage) throws -> (artwork: Int, box: NormalizedRectangle)? {
        let matches = try artworkMatches(in: image)
        let best = artworks.indices.filter { artworks[$0].label == label }.max { matches[$0].score < matches[$1].score }
        // The whole logo must match too, because its parts may match elsewhere.
        guard let best, calibration.confidence(matches[best].score, logos: 1) >= 0.5,
            calibration.confidence(matches[best].whole.score, logos: 1) >= 0.5
        else { return nil }
        return (best, matches[best].whole.box)
    }
}

extension ArtworkPart {
    /// Returns the view of the part in a photo, at the scale of the views of its artwork.
    /// - Parameters:
    ///   - logo: The box of the logo.
    ///   - border: The number of pixels around the window of the part.
    fileprivate func view(
        in photo: RasterImage, logo: NormalizedRectangle, border: Int
    ) -> RasterImage {
        let (logoWidth, logoHeight) = (logo.width * Float(photo.width), logo.height * Float(photo.height))
        // The part may be enlarged: its views have the area of those of the whole logo.
        let scale = width / (logoWidth * (x.upperBound - x.lowerBound))
        let centerX = logo.x * Float(photo.width) + (x.lowerBound + x.upperBound) / 2 * logoWidth
        let centerY = logo.y * Float(photo.height) + (y.lowerBound + y.upperBound) / 2 * logoHeight
        let (targetWidth, targetHeight) = (windowWidth + 2 * border, windowHeight + 2 * border)
        func range(_ center: Float, _ length: Int) -> Range<Int> {
            let side = max(Int((Float(length) / scale).rounded()), 1)
            let first = Int((center - Float(side) / 2).rounded())
            return first..<(first + side)
        }
        let (columns, rows) = (range(centerX, targetWidth), range(centerY, targetHeight))
        return photo.extendedPart(columns: columns, rows: rows).resampled(
            columns: ResampledAxis(length: columns.count, target: targetWidth),
            rows: ResampledAxis(length: rows.count, target: targetHeight))
    }
}

extension RasterImage {
    /// Returns a part of the image, whose border pixels continue outside of it.
    fileprivate func extendedPart(columns: Range<Int>, rows: Range<Int>) -> RasterImage {
        var part = RasterImage(width: columns.count, height: rows.count, channels: channels)
        for (targetRow, row) in rows.enumerated() {
            let source = min(max(row, 0), height - 1) * width
            for (targetColumn, column) in columns.enumerated() {
                let pixel = source + min(max(column, 0), width - 1)
                let target = targetRow * columns.count + targetColumn
                for channel in 0..<channels {
                    part.samples[target * channels + channel] = samples[pixel * channels + channel]
                }
            }
        }
        return part
    }
}
