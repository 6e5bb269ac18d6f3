/// The limits by which a logo detector selects objects from the peaks of its heat maps.
package enum ObjectSelection {
    /// The maximum number of objects of one logo in an image.
    package static let maximumCount = 100
    /// Peaks below this confidence are never objects; the limit bounds the time of non-maximum suppression.
    package static let minimumConfidence: Float = 0.01
    /// The overlap (IoU) at which the weaker of two boxes of the same logo is suppressed.
    package static let sameLogoOverlap: Float = 0.45
    /// The overlap (IoU) at which the weaker of two boxes of different logos is suppressed.
    ///
    /// One logo may contain a smaller one, but two logos with similar boxes are the same object.
    package static let otherLogoOverlap: Float = 0.5
    /// The share of a box inside a better box of the same logo at which it is suppressed.
    ///
    /// Fine pyramid levels see parts of a large logo as the whole logo.
    package static let sameLogoContainment: Float = 0.8
    /// The share of a match inside another match of the same logo, or the reverse, at which the weaker one is suppressed.
    ///
    /// It is lower than for a detector, because the boxes of matches are less exact.
    package static let matchContainment: Float = 0.6
    /// The largest ratio of the areas of a match and of a better match of the same logo inside it at which the larger one is suppressed.
    ///
    /// Two levels further up the pyramid, the scores of a logo can still be high, and a box has four times the area.
    package static let largerMatchArea: Float = 6
    /// The overlap (IoU) at which a suppressed box is averaged with the one that suppresses it.
    package static let averagedOverlap: Float = 0.6
}
