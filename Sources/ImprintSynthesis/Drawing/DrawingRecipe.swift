internal import ImprintCore
package import ImprintImages

/// A recipe for a data set of drawn images: the logos of each label, and the distribution of sizes, angles and styles.
///
/// Recipes are JSON files in `datasets/`. All fields except `compositing`, `effects` and `number` are required, and a range is written as
/// `[lowest, highest]`. An image depends only on the recipe, the seed, its label and its index. Its samples are computed only
/// with additions, products, quotients and square roots, which give the same results on every platform.
package struct DrawingRecipe: Codable, Sendable, Equatable {
    /// The version of the recipe format; this library reads version 1.
    package let format: Int
    /// The name of the data set and of the recipe's file.
    package let name: String
    /// A sentence about the data set.
    package let description: String
    /// The width and height of the images, in pixels (16…1024).
    package let size: Int
    /// The labels, at least two, each with the logos that its images show.
    package let labels: [Label]
    /// The default number of images, of all labels together.
    package let count: Int
    /// The default random seed.
    package let seed: UInt64
    /// The ranges of continuous properties of an image.
    package let ranges: Ranges
    /// The probabilities of properties of an image.
    package let shares: Shares
    /// The logos for composites, if the recipe is used as artwork.
    ///
    /// If nil, they are the logos of the first label. The hard negatives are then the logos of the other labels that differ from
    /// them at every rotation.
    package let compositing: Compositing?

    /// The logos, hard negatives and effects for composites.
    package struct Compositing: Codable, Sendable, Equatable {
        /// The variants of the logo, at least one.
        package let logos: [WeightedLogo]
        /// The hard negatives, at least one: shapes that look like the logo but differ from it at every rotation.
        package let hardNegatives: [WeightedLogo]
        /// The names of the effects in `SceneEffects.drawable`; nil for the standard effects.
        package let effects: [String]?

        private enum CodingKeys: String, CodingKey {
            case logos = "marks"
            case hardNegatives = "nearMisses"
            case effects
        }
    }

    /// One label of the data set.
    package struct Label: Codable, Sendable, Equatable {
        /// The name of the label and of its folder.
        package let name: String
        /// The logos of the label, at least one.
        package let logos: [WeightedLogo]

        private enum CodingKeys: String, CodingKey {
            case name
            case logos = "marks"
        }
    }

    /// A kind of logo and its frequency.
    package struct WeightedLogo: Codable, Sendable, Equatable {
        /// The kind of logo.
        package let kind: LogoKind
        /// The frequency, relative to the other weights of the label (above 0).
        package let weight: Float
        /// The number of a fixed logo of this kind, which is the same in every image; nil for a new random logo in each image.
        package internal(set) var number: Int?
    }

    /// The ranges of properties that are uniformly distributed over the images.
    package struct Ranges: Codable, Sendable, Equatable {
        /// The diameter of the logo, as a fraction of the side of the image (within 0.1…1).
        package let span: ClosedRange<Float>
        /// The counter-clockwise rotation of the logo, in degrees (within −180…180).
        package let rotationDegrees: ClosedRange<Float>
        /// The tilt of the logo away from the camera, which gives perspective, in degrees (within 0…60).
        package let tiltDegrees: ClosedRange<Float>
        /// The standard deviation of the Gaussian blur, as a fraction of the side of the image (within 0…0.03).
        package let blur: ClosedRange<Float>
        /// The standard deviation of the noise, as a fraction of full brightness (within 0…0.5).
        package let noise: ClosedRange<Float>
    }

    /// The probabilities (0…1) of properties of an image.
    package struct Shares: Codable, Sendable, Equatable {
        /// A patterned or cluttered background, instead of an even one or a gradient.
        package let busyBackground: Float
        /// A plate, badge or sheet of paper behind the logo.
        package let plate: Float
        /// Ink that is lighter than its background, instead of darker.
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
        /// The remaining probability, 1 − `outlined` − `hatched` − `worn`, is the probability of plain filled shapes.
        package let worn: Float
    }

    /// Draws image `index` (from 0) of the label at index `label`: `size` x `size` pixels, 3 channels.
    package func draw(label: Int, index: Int, seed: UInt64) -> RasterImage {
        precondition(labels.indices.contains(label), "label index \(label) is out of range for \(labels.count) labels")
        return Drawing(self, label: label, index: index, seed: seed).render()
    }

    /// Returns the number of images of the label at index `label`; the first labels get the remainder of an even split.
    package func imageCount(ofLabel label: Int, count: Int) -> Int {
        count / labels.count + (label < count % labels.count ? 1 : 0)
    }
}

extension DrawingRecipe.WeightedLogo {
    /// Returns the fixed logo with the number, or a random logo of the kind.
    func logo(_ random: inout RandomStream) -> DrawnLogo {
        guard let number else { return kind.logo(&random) }
        var fixed = RandomStream(seed: 0, "mark", number)
        return kind.logo(&fixed)
    }
}

extension [DrawingRecipe.WeightedLogo] {
    /// Returns a random element with a probability proportional to its weight.
    func choice(_ random: inout RandomStream) -> DrawingRecipe.WeightedLogo {
        var position = random.uniform() * reduce(0) { $0 + $1.weight }
        for logo in dropLast() {
            if position < logo.weight { return logo }
            position -= logo.weight
        }
        return self[count - 1]
    }
}
