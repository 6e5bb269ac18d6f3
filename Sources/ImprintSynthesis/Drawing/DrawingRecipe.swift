internal import ImprintCore
package import ImprintImages

/// A recipe for a data set of drawn images: which marks the labels show, and how varied the pictures are.
///
/// Recipes are JSON files in `datasets/`; every field but `compositing` and `number` is required, and a range is written as `[lowest, highest]`.
/// An image depends on the recipe, the seed, its label and its index and on nothing else: the samples are computed
/// with additions, products, quotients and square roots alone, which are the same on every platform.
package struct DrawingRecipe: Codable, Sendable, Equatable {
    /// The version of the format of recipes; this library reads version 1.
    package let format: Int
    /// The name of the data set, which is also that of the recipe's file.
    package let name: String
    /// What the data set is, in a sentence.
    package let description: String
    /// The width and height of the images, in pixels (16…1024).
    package let size: Int
    /// The labels, at least two, each with the marks that its images show.
    package let labels: [Label]
    /// How many images, of all labels together, a data set has unless something else is asked for.
    package let count: Int
    /// The seed of a data set unless something else is asked for.
    package let seed: UInt64
    /// Between which bounds the measures of a picture are drawn.
    package let ranges: Ranges
    /// How often a picture has certain properties.
    package let shares: Shares
    /// What is composited where the recipe is artwork; if nil, the marks of the first label, and of the others what no turn of
    /// them is.
    package let compositing: Compositing?

    /// What is composited where the recipe is artwork.
    package struct Compositing: Codable, Sendable, Equatable {
        /// What the logo looks like, at least one.
        package let marks: [WeightedMark]
        /// What could be taken for it, however it is turned, and is not it, at least one.
        package let nearMisses: [WeightedMark]
    }

    /// One label of the data set.
    package struct Label: Codable, Sendable, Equatable {
        /// The name of the label, and of its folder.
        package let name: String
        /// The kinds of mark that it shows, at least one.
        package let marks: [WeightedMark]
    }

    /// A kind of mark and how often it appears.
    package struct WeightedMark: Codable, Sendable, Equatable {
        /// The kind of mark.
        package let kind: MarkKind
        /// Its frequency, relative to the other weights of the label (above 0).
        package let weight: Float
        /// What of this kind it is, the same in every picture; another one in each if nil.
        package internal(set) var number: Int?
    }

    /// The bounds of what is drawn uniformly for every picture.
    package struct Ranges: Codable, Sendable, Equatable {
        /// The diameter of the mark, as a fraction of the side of the image (within 0.1…1).
        package let span: ClosedRange<Float>
        /// By how much the mark is turned, anticlockwise, in degrees (within −180…180).
        package let rotationDegrees: ClosedRange<Float>
        /// By how much the mark is tilted away from the camera, which gives perspective, in degrees (within 0…60).
        package let tiltDegrees: ClosedRange<Float>
        /// The deviation of the blur, as a fraction of the side of the image (within 0…0.03).
        package let blur: ClosedRange<Float>
        /// The deviation of the noise, as a fraction of full brightness (within 0…0.5).
        package let noise: ClosedRange<Float>
    }

    /// The probabilities (0…1) of properties of a picture.
    package struct Shares: Codable, Sendable, Equatable {
        /// A patterned or cluttered background, rather than an even one or a gradient.
        package let busyBackground: Float
        /// A plate, badge or sheet of paper behind the mark.
        package let plate: Float
        /// Ink that is lighter than what is behind it, rather than darker.
        package let lightInk: Float
        /// Parts of different colours.
        package let twoColors: Float
        /// Wobbly outlines, as drawn by hand.
        package let handDrawn: Float
        /// Outlines instead of filled shapes.
        package let outlined: Float
        /// Outlines with strokes inside.
        package let hatched: Float
        /// Filled shapes with worn ink.
        ///
        /// What `outlined`, `hatched` and `worn` leave of 1 is filled.
        package let worn: Float
    }

    /// Draws image `index` (from 0) of the label at position `label`: `size` x `size`, 3 channels.
    package func draw(label: Int, index: Int, seed: UInt64) -> RasterImage {
        precondition(labels.indices.contains(label), "the recipe has \(labels.count) labels, there is no \(label)")
        return Drawing(self, label: label, index: index, seed: seed).render()
    }

    /// How many of `count` images the label at position `label` gets: an even split, the first labels get what is left.
    package func imageCount(ofLabel label: Int, count: Int) -> Int {
        count / labels.count + (label < count % labels.count ? 1 : 0)
    }
}

extension DrawingRecipe.WeightedMark {
    /// A mark of the kind.
    func mark(_ random: inout RandomStream) -> Mark {
        guard let number else { return kind.mark(&random) }
        var same = RandomStream(seed: 0, "mark", number)
        return kind.mark(&same)
    }
}

extension [DrawingRecipe.WeightedMark] {
    /// A random one, by weight.
    func choice(_ random: inout RandomStream) -> DrawingRecipe.WeightedMark {
        var position = random.uniform() * reduce(0) { $0 + $1.weight }
        for mark in dropLast() {
            if position < mark.weight { return mark }
            position -= mark.weight
        }
        return self[count - 1]
    }
}
