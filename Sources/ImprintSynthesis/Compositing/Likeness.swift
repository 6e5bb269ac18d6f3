/// Measures the similarity of designs to a logo under any rotation and in any of its single-ink versions.
///
/// A hard negative must not look like the logo itself. For example, the mirror image of a symmetric logo looks like the logo. So
/// does an upside-down logo, because training shows the logo at any angle. The silhouettes are compared at 32x32 points, the logo
/// at rotations 7.5° apart. If a single ink cannot print the logo, composites show it in several colours, so the tones must agree too.
struct Likeness {
    /// The tone of each point, or 0 for all tones of an ink; −1 for points outside of the silhouette.
    private typealias Silhouette = [Int8]

    /// The silhouettes of the logo, by rotation and then by set of inked tones.
    private let rotated: [[Silhouette]]
    private let inked: [Set<Int>]
    private let toneCount: Int

    private static let side = 32

    /// Creates the comparison with a logo.
    /// - Parameters:
    ///   - design: The logo.
    ///   - inked: The sets of tones that a single ink prints; empty if the logo is not recognizable in a single ink.
    ///   - toneCount: The number of tones of the logo. A design may have higher tones, which repeat these, as in `Inks`.
    init(_ design: Design, inked: [Set<Int>], toneCount: Int) {
        (self.inked, self.toneCount) = (inked, toneCount)
        rotated = (0..<48).map {
            Self.silhouettes(of: design, inked, toneCount, rotation: .direction(degrees: Float($0) * 7.5))
        }
    }

    /// Returns the maximum intersection over union (IoU) of the silhouettes, over all rotations and single-ink versions.
    func overlap(with design: Design) -> Float {
        let others = Self.silhouettes(of: design, inked, toneCount, rotation: Point(1, 0))
        var largest: Float = 0
        for silhouettes in rotated {
            for (silhouette, other) in zip(silhouettes, others) {
                var (intersection, union) = (0, 0)
                for index in silhouette.indices {
                    let (first, second) = (silhouette[index], other[index])
                    intersection += first == second && first >= 0 ? 1 : 0
                    union += first >= 0 || second >= 0 ? 1 : 0
                }
                if union > 0 { largest = max(largest, Float(intersection) / Float(union)) }
            }
        }
        return largest
    }

    private static func silhouettes(
        of design: Design, _ inked: [Set<Int>], _ toneCount: Int, rotation: Point
    ) -> [Silhouette] {
        var tones: Silhouette = []
        tones.reserveCapacity(side * side)
        for row in 0..<side {
            for column in 0..<side {
                let point = (Point(Float(column), Float(row)) + 0.5) * (2 / Float(side)) - 1
                let position = point.rotatedBack(by: rotation)
                let element = design.elements.last { $0.distance(to: position) < 0 }
                tones.append(element.map { Int8($0.tone % toneCount) } ?? -1)
            }
        }
        guard !inked.isEmpty else { return [tones] }
        return inked.map { set in tones.map { set.contains(Int($0)) ? 0 : -1 } }
    }
}
