internal import Foundation

/// The calibration that turns the score of a logo in a photo into a confidence: Platt scaling that depends on the number of logos.
///
/// The log-odds of a logo are (score − midpoint − growth · ln(logos)) / width. In a photo without any logo, the highest score grows with
/// the number of logos that are searched, and so does the midpoint.
package struct MatchCalibration: Hashable, Sendable {
    /// The score with a confidence of 0.5 if a single logo is searched.
    package var midpoint: Float
    /// The difference of scores that multiplies the odds by e.
    package var width: Float
    /// The increase of the midpoint if e times as many logos are searched.
    package var growth: Float

    /// Creates a calibration.
    package init(midpoint: Float, width: Float, growth: Float) {
        (self.midpoint, self.width, self.growth) = (midpoint, width, growth)
    }

    /// Returns the confidence in a logo.
    /// - Parameters:
    ///   - score: The score of the logo.
    ///   - logos: The number of images of logos that are searched.
    package func confidence(_ score: Float, logos: Int) -> Float {
        1 / (1 + exp((midpoint + growth * log(Float(logos)) - score) / width))
    }
}
