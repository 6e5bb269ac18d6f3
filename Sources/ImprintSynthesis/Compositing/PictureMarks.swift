internal import ImprintCore

/// A logo's picture as a mark, and what is nearly it: each hard negative is checked not to be the mark after all.
struct PictureMarks: Sendable {
    let design: Design
    let tones: [Color]
    let inkedTones: [Set<Int>]
    let isMirrorSymmetric: Bool
    /// Whether the picture is a rectangle with a background of its own.
    let keepsBackground: Bool
    /// Hard negatives of which there are few: parts missing, halves, and the mirror image.
    private let prepared: [(kind: String, design: Design)]
    /// The mark without each of its parts, unless it has but one.
    private let withoutOne: [[Element]]
    /// The parts without which the mark is another one; a dot may move without anybody seeing it.
    private let weighty: [Int]
    /// The parts that by themselves are another mark.
    private let partial: [Element]
    private let likeness: Likeness

    /// From which share of a common area on two silhouettes are the same to the eye.
    private static let overlapLimit: Float = 0.92

    init(_ parts: ArtworkParts, keepsBackground: Bool = false) {
        let design = parts.design()
        self.design = design
        self.keepsBackground = keepsBackground
        tones = parts.tones
        inkedTones = parts.inkedTones
        let likeness = Likeness(design, inked: inkedTones, turnsFully: true)
        self.likeness = likeness
        // The silhouette of a rectangle is symmetric, but what is in it need not be.
        isMirrorSymmetric = !keepsBackground && !Self.isOther(design.mirrored, likeness)
        let withoutOne = parts.count > 1 ? (0..<parts.count).map { parts.elements(without: $0) } : []
        self.withoutOne = withoutOne
        weighty = withoutOne.indices.filter { Self.isOther(Design(fitting: withoutOne[$0]), likeness) }
        partial = design.elements.filter { Self.isOther(Design(fitting: [$0]), likeness) }
        prepared =
            (withoutOne.map { ("part missing", Design(fitting: $0)) }
            + Point.sides.map { ("half", Design(fitting: parts.elements(cutAt: $0))) }
            + [("mirrored", design.mirrored)])
            .filter { !$0.1.elements.isEmpty && Self.isOther($0.1, likeness) }
    }

    /// What is nearly the mark, and how it came about; nil where chance made the mark itself of it.
    func hardNegative(_ random: inout RandomStream) -> (kind: String, design: Design)? {
        var edits = [squeezed]
        if !partial.isEmpty { edits.append(repeated) }
        if !weighty.isEmpty { edits += [swapped, apart, resized, replaced, replaced] }
        // As often as the others of their kind: a part missing, a half, the mirror image.
        let choice = random.index(below: edits.count + (prepared.isEmpty ? 0 : 3))
        if choice >= edits.count {
            let kinds = ["part missing", "part missing", "half", "mirrored"]
            let kind = random.element(of: kinds)
            let fitting = prepared.filter { $0.kind == kind }
            return random.element(of: fitting.isEmpty ? prepared : fitting)
        }
        let miss = edits[choice](&random)
        return isOther(miss.design) ? miss : nil
    }

    /// Whether a design is another one than the mark.
    func isOther(_ design: Design) -> Bool { Self.isOther(design, likeness) }

    private static func isOther(_ design: Design, _ likeness: Likeness) -> Bool {
        likeness.overlap(with: design) < overlapLimit
    }

    private typealias HardNegative = (kind: String, design: Design)

    /// Narrower than perspective makes it, even where that narrows it the other way.
    private func squeezed(_ random: inout RandomStream) -> HardNegative {
        let direction = Point(random.uniform(in: 0.33...0.52), 1)
        let scale = random.chance(0.5) ? direction : Point(direction.y, direction.x)
        return ("proportions", Design(fitting: design.elements.map { $0.moved(by: .zero, scaled: scale) }))
    }

    /// One part two or three times; of the whole mark, each would be the logo.
    private func repeated(_ random: inout RandomStream) -> HardNegative {
        let once = Design(fitting: [random.element(of: partial)]).elements
        let count = 2 + random.index(below: 2)
        let start = random.uniform(in: 0...360)
        // Two need less room than three around the same point.
        let reach = random.uniform(in: 1...1.4) * (count == 2 ? 1 : 1.15)
        let copies = (0..<count).flatMap { copy in
            let direction = Point.direction(degrees: start + 360 * Float(copy) / Float(count))
            return once.map { $0.moved(by: direction * reach) }
        }
        return ("repeated", Design(fitting: copies))
    }

    /// Two parts in each other's place.
    private func swapped(_ random: inout RandomStream) -> HardNegative {
        var elements = design.elements
        let first = random.element(of: weighty)
        let second = (first + 1 + random.index(below: elements.count - 1)) % elements.count
        let (a, b) = (elements[first], elements[second])
        elements[first] = a.fitted(into: b)
        elements[second] = b.fitted(into: a)
        return ("swapped", Design(fitting: elements))
    }

    /// One part moved away from the others, or onto another one.
    private func apart(_ random: inout RandomStream) -> HardNegative {
        let way = random.direction() * random.uniform(in: 0.45...1.3)
        return ("apart", withOneChanged(&random) { $0.moved(by: way) })
    }

    /// One part much larger or smaller than it should be.
    private func resized(_ random: inout RandomStream) -> HardNegative {
        let factor = random.chance(0.5) ? random.uniform(in: 0.3...0.6) : random.uniform(in: 1.6...2.4)
        let resized = withOneChanged(&random) {
            $0.moved(by: -$0.center, scaled: Point(repeating: factor)).moved(by: $0.center)
        }
        return ("resized", resized)
    }

    /// Another shape or letter where a part was.
    private func replaced(_ random: inout RandomStream) -> HardNegative {
        let figure = random.chance(0.5) ? Lettering.standard.letter(&random) : Figure([LookAlike.shape(&random)])
        return ("replaced", withOneChanged(&random) { Element(figure: figure, tone: $0.tone).fitted(into: $0) })
    }

    /// The mark with one part changed; where that lay within another one, there is no hole.
    private func withOneChanged(_ random: inout RandomStream, _ change: (Element) -> Element) -> Design {
        let part = random.element(of: weighty)
        var elements = withoutOne[part]
        elements.insert(change(design.elements[part]), at: part)
        return Design(fitting: elements)
    }
}

/// Marks of plain shapes that take up as much room as a logo does.
enum LookAlike {
    /// One to four shapes beside each other or one within the other, in tones of the logo.
    static func design(tones: Int, _ random: inout RandomStream) -> Design {
        func tone() -> Int { random.index(below: max(tones, 1)) }
        let first = Element(figure: Figure([shape(&random)]), tone: tone())
        var elements = [first]
        switch random.index(below: 4) {
        case 0: break
        case 1:
            // A badge: another tone if there is one, else the two are one silhouette.
            let figure = random.chance(0.5) ? Lettering.standard.letter(&random) : Figure([shape(&random)])
            let size = random.uniform(in: 0.35...0.6)
            let inner = Element(figure: figure, tone: (first.tone + 1) % max(tones, 2))
            elements.append(inner.moved(by: .zero, scaled: Point(size, size)))
        default:
            for _ in 0...random.index(below: 3) {
                let size = random.uniform(in: 0.3...1)
                let other = Element(figure: random.chance(0.4) ? first.figure : Figure([shape(&random)]), tone: tone())
                let place = random.direction() * (1.1 + size + random.uniform(in: 0...0.5))
                elements.append(other.moved(by: .zero, scaled: Point(size, size)).moved(by: place))
            }
        }
        return Design(fitting: elements)
    }

    /// A disc, an oval, a box, a triangle, a ring or a bar, about 1 in radius.
    static func shape(_ random: inout RandomStream) -> DrawnShape {
        let direction = random.chance(0.5) ? Point(1, 0) : random.direction()
        let narrow = random.uniform(in: 0.45...0.75)
        switch random.index(below: 7) {
        case 0: return .disc(center: .zero, radius: 1)
        case 1: return .ellipse(center: .zero, radii: Point(1, narrow), direction: direction)
        case 2: return .box(center: .zero, halfSides: Point(0.85, 0.85), direction: direction, rounding: 0)
        case 3:
            return .box(
                center: .zero, halfSides: Point(1, narrow), direction: direction,
                rounding: narrow * random.uniform(in: 0...0.9))
        case 4: return .triangle(center: .zero, inradius: 0.5, direction: random.direction())
        case 5: return .ring(center: .zero, radius: 0.8, halfWidth: random.uniform(in: 0.12...0.3))
        default:
            return .segment(
                from: -direction * 0.8, to: direction * 0.8, halfWidth: random.uniform(in: 0.12...0.3))
        }
    }
}

extension Point {
    /// Left, right, up and down.
    fileprivate static let sides = [Point(-1, 0), Point(1, 0), Point(0, -1), Point(0, 1)]
}

extension Element {
    private var box: (low: Point, high: Point) {
        corners.reduce(into: (low: Point(repeating: .infinity), high: Point(repeating: -.infinity))) { box, corner in
            box.low = Point(min(box.low.x, corner.x), min(box.low.y, corner.y))
            box.high = Point(max(box.high.x, corner.x), max(box.high.y, corner.y))
        }
    }

    /// The middle of its box.
    var center: Point { (box.low + box.high) / 2 }

    /// Moved to the middle of another one and made as large as it, the proportions kept.
    fileprivate func fitted(into other: Element) -> Element {
        let (own, room) = (box.high - box.low, other.box.high - other.box.low)
        let factor = max(room.length / max(own.length, 1e-3), 1e-3)
        return moved(by: -center, scaled: Point(repeating: factor)).moved(by: other.center)
    }
}
