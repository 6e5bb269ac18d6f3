internal import Foundation

/// An upper limit on the false positives of a logo at a confidence of 0.5, from images that do not show it.
///
/// Platt scaling gives both classes the same weight, so a confidence of 0.5 has about as many errors in images with the logo as in those
/// without it. But most images do not show an added logo. So the limit lowers the confidences until few images without the logo have a
/// detection.
struct FalsePositiveLimit {
    /// The maximum expected number of false positives in an image.
    static let rate = 0.05
    /// The minimum number of images to estimate the rate from; in fewer, a single false positive exceeds it.
    static let minimumImages = Int((1 / rate).rounded(.up))
    /// The log-odds at the limit, a little below 0: a personalization stores its weights as float16, which changes the scores.
    private static let oddsAtLimit = -0.1
    /// The log-odds of the lowest scores of images with the logo, which must remain candidates of detection (a confidence of 0.01).
    private static let oddsOfCandidates = -3.5

    /// The highest score that must not be a detection.
    private(set) var score = -Float.infinity

    /// Adds images of one kind.
    ///
    /// The expected number of false positives in an image of each kind is below `rate`.
    /// - Parameter images: The scores of the false peaks in each image, in any order.
    mutating func add(_ images: [[Float]]) {
        let allowed = max(Int((Self.rate * Double(images.count)).rounded(.up)) - 1, 0)
        let scores = images.joined().sorted(by: >)
        if scores.indices.contains(allowed) { score = max(score, scores[allowed]) }
    }

    /// Returns a curve whose confidence is below 0.5 at the limit; the unchanged curve if it already is.
    ///
    /// The order of scores stays the same. If the limit is far above the scores of images with the logo, the curve is also flatter, so that
    /// 95 % of these images still have a candidate.
    /// - Parameter positives: The scores of images with the logo.
    func applied(to curve: PlattScaling, positives: [Float]) -> PlattScaling {
        let limit = Double(score)
        guard limit.isFinite, curve.slope * limit + curve.offset > Self.oddsAtLimit else { return curve }
        var curve = curve
        let sorted = positives.sorted()
        if let low = sorted.dropFirst(sorted.count / 20).first, Double(low) < limit {
            curve.slope = min(curve.slope, (Self.oddsAtLimit - Self.oddsOfCandidates) / (limit - Double(low)))
        }
        curve.offset = Self.oddsAtLimit - curve.slope * limit
        return curve
    }
}
