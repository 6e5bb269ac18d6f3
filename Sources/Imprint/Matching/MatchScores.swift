internal import Foundation

/// The scores of logos in photos, which turn a score into a confidence.
///
/// The log-odds of a logo are (score − midpoint − growth · ln(logos)) / width. More logos have a higher maximum in a photo that shows none of
/// them, so that the midpoint grows with their number.
package struct MatchScores: Hashable, Sendable {
    /// The score with a confidence of 0.5 if a single logo is searched.
    package var midpoint: Float
    /// The difference of scores that multiplies the odds by e.
    package var width: Float
    /// The increase of the midpoint if e times as many logos are searched.
    package var growth: Float

    /// Creates scores.
    package init(midpoint: Float, width: Float, growth: Float) {
        (self.midpoint, self.width, self.growth) = (midpoint, width, growth)
    }

    /// The scores of EfficientNet-Lite0, as an estimate for other networks.
    package static let estimate = MatchScores(midpoint: 0.345, width: 0.057, growth: 0.017)

    /// Returns the confidence in a logo.
    /// - Parameters:
    ///   - score: The score of the logo.
    ///   - logos: The number of logos that are searched.
    package func confidence(_ score: Float, logos: Int) -> Float {
        1 / (1 + exp((midpoint + growth * log(Float(logos)) - score) / width))
    }
}
