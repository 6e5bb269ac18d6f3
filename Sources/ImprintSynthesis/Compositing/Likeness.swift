/// Tells designs apart that look alike to people however they are turned and printed.
///
/// A hard negative must not be the mark itself: the mirror image of a symmetric mark, or a mark upside down that training shows
/// turned anyway. Both are compared as silhouettes of 32x32 points, the mark at turns 7.5° apart.
struct Likeness {
    private typealias Silhouette = [Bool]

    /// By turn, then by what is printed of it.
    private let turned: [[Silhouette]]
    private let inked: [Set<Int>]

    private static let side = 32

    /// - Parameters:
    ///   - inked: The sets of tones that appear together where the mark is printed in one colour; all where empty.
    ///   - turnsFully: Whether the mark may be seen at any angle, or at up to 30° to either side.
    init(_ design: Design, inked: [Set<Int>], turnsFully: Bool) {
        self.inked = inked
        let turns = turnsFully ? Array(0..<48) : Array(-4...4)
        turned = turns.map { Self.silhouettes(of: design, inked, turn: .direction(degrees: Float($0) * 7.5)) }
    }

    /// The largest share of the common area in that of both (intersection over union), of any turn and way to print.
    func overlap(with design: Design) -> Float {
        let others = Self.silhouettes(of: design, inked, turn: Point(1, 0))
        var largest: Float = 0
        for silhouettes in turned {
            for (own, other) in zip(silhouettes, others) {
                var (both, either) = (0, 0)
                for place in own.indices {
                    both += own[place] && other[place] ? 1 : 0
                    either += own[place] || other[place] ? 1 : 0
                }
                if either > 0 { largest = max(largest, Float(both) / Float(either)) }
            }
        }
        return largest
    }

    private static func silhouettes(of design: Design, _ inked: [Set<Int>], turn: Point) -> [Silhouette] {
        var tones: [Int] = []
        tones.reserveCapacity(side * side)
        for row in 0..<side {
            for column in 0..<side {
                let point = (Point(Float(column), Float(row)) + 0.5) * (2 / Float(side)) - 1
                let place = point.turnedBack(by: turn)
                tones.append(design.elements.last { $0.distance(to: place) < 0 }?.tone ?? -1)
            }
        }
        guard !inked.isEmpty else { return [tones.map { $0 >= 0 }] }
        return inked.map { set in tones.map { set.contains($0) } }
    }
}
