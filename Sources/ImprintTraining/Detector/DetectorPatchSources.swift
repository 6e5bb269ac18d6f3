internal import Imprint
internal import ImprintImages
internal import ImprintSynthesis

/// The images that patches show, and the locations of logos in them.
extension DetectorPatches {
    /// A detection of the network in an image.
    struct Detection: Codable, Hashable, Sendable {
        /// The index of the image among the negatives or the positives.
        let imageIndex: Int
        let peak: PyramidScanner.Peak

        private enum CodingKeys: String, CodingKey {
            case imageIndex = "picture"
            case peak
        }
    }

    /// A photo that shows a logo.
    struct Positive {
        let source: PatchSource
        let logo: Int
    }

    /// A composite with the location of its subject in the coordinates of patch windows.
    struct PooledComposite {
        let source: PatchSource
        let location: Composite.Location
        /// The corners of the convex hull, in pixels.
        let outline: [SIMD2<Float>]
        let logo: Int

        init(_ composite: Composite, logo: Int) {
            source = PatchSource(composite.image)
            self.logo = logo
            // The centre of the first pixel is (½, ½) in a composite, but (0, 0) in a patch window.
            let subject = composite.subject
            location = Composite.Location(x: subject.x - 0.5, y: subject.y - 0.5, span: subject.span)
            outline = composite.outline.map { $0 - 0.5 }
        }
    }
}
