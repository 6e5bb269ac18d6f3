internal import Foundation

/// The calibration that turns the score of a logo in a photo into a confidence: Platt scaling that depends on the number of logos.
///
/// The log-odds of a logo are (score − midpoint − growth · ln(logos)) / width. A search for more logos finds a higher maximum score in a
/// photo without any logo, so the midpoint grows with the number of logos.
package struct MatchCalibration: Hashable, Sendable {
    /// The score that has a confidence of 0.5 in a search for one logo.
    package var midpoint: Float
    /// The increase in score that multiplies the odds by e.
    package var width: Float
    /// The increase of the midpoint in a search for e times as many logos.
    package var growth: Float

    /// Creates a calibration.
    package init(midpoint: Float, width: Float, growth: Float) {
        (self.midpoint, self.width, self.growth) = (midpoint, width, growth)
    }

    /// Returns the confidence in a logo.
    /// - Parameters:
    ///   - score: The score of the logo.
    ///   - logos: The number of logo images in the search.
    package func confidence(_ score: Float, logos: Int) -> Float {
        1 / (1 + exp((midpoint + growth * log(Float(logos)) - score) / width))
    }
}
