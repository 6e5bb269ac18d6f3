internal import ImprintCore

/// The logo in an artwork image, and synthetic hard negatives of it (look-alikes), each of which is checked to differ from the logo.
struct ArtworkLogo: Sendable {
    let design: Design
    let tones: [Color]
    let inkedTones: [Set<Int>]
    let isMirrorSymmetric: Bool
    /// Whether the logo is the whole rectangular image with its background.
    let keepsBackground: Bool
    /// The hard negatives without random parameters: a missing part, a half, and the mirror image.
    private let fixedHardNegatives: [HardNegative]
    /// The elements of the logo without each of its parts; empty if the logo has a single part.
    private let elementsWithoutPart: [[Element]]
    /// The indices of the parts whose removal changes the logo visibly.
    private let essentialParts: [Int]
    /// The parts that differ visibly from the logo when shown without the others.
    private let separableParts: [Element]
    private let likeness: Likeness

    /// The minimum intersection over union (IoU) at which two silhouettes count as the same.
    private static let overlapLimit: Float = 0.92

    init(_ parts: ArtworkParts, keepsBackground: Bool = false) {
        let design = parts.design()
        self.design = design
        self.keepsBackground = keepsBackground
        tones = parts.tones
        inkedTones = parts.inkedTones
        let likeness = Likeness(design, inked: inkedTones, toneCount: tones.count)
        self.likeness = likeness
        // The silhouette of a rectangle is symmetric, but its content may not be.
        isMirrorSymmetric = !keepsBackground && !Self.isDistinct(design.mirrored, likeness)
        let elementsWithoutPart = parts.count > 1 ? (0..<parts.count).map { parts.elements(without: $0) } : []
        self.elementsWithoutPart = elementsWithoutPart
        let essentialParts = elementsWithoutPart.indices.filter { part in
            let rest = elementsWithoutPart[part]
            // Fitted to the circle, the rest differs in size even if the part is a dot at the end of a word.
            let isSmall = parts.share(of: part) * Float(parts.count) < 0.5
            return Self.isDistinct(Design(fitting: rest), likeness)
                && !(isSmall && !Self.isDistinct(Design(elements: rest), likeness))
        }
        self.essentialParts = essentialParts
        separableParts = design.elements.filter { Self.isDistinct(Design(fitting: [$0]), likeness) }
        fixedHardNegatives =
            (essentialParts.map { ("part missing", Design(fitting: elementsWithoutPart[$0])) }
            + Point.sides.map { ("half", Design(fitting: parts.elements(cutAt: $0))) }
            + [("mirrored", design.mirrored)])
            .filter { !$0.1.elements.isEmpty && Self.isDistinct($0.1, likeness) }
    }

    /// Returns a random hard negative and the name of its kind; nil if the random change gives the logo itself.
    func hardNegative(_ random: inout RandomStream) -> (kind: String, design: Design)? {
        var edits = [squeezed]
        if !separableParts.isEmpty { edits.append(repeated) }
        if !essentialParts.isEmpty { edits += [swapped, apart, resized, replaced, replaced] }
        // The three fixed kinds together are as frequent as three edits.
        let choice = random.index(below: edits.count + (fixedHardNegatives.isEmpty ? 0 : 3))
        if choice >= edits.count {
            let kinds = ["part missing", "part missing", "half", "mirrored"]
            let kind = random.element(of: kinds)
            let fitting = fixedHardNegatives.filter { $0.kind == kind }
            return random.element(of: fitting.isEmpty ? fixedHardNegatives : fitting)
        }
        let edited = edits[choice](&random)
        return isDistinct(edited.design) ? edited : nil
    }

    /// Whether a design differs visibly from the logo.
    func isDistinct(_ design: Design) -> Bool { Self.isDistinct(design, likeness) }

    private static func isDistinct(_ design: Design, _ likeness: Likeness) -> Bool {
        likeness.overlap(with: design) < overlapLimit
    }

    private typealias HardNegative = (kind: String, design: Design)

    /// Returns the logo with an aspect ratio that perspective cannot cause.
    private func squeezed(_ random: inout RandomStream) -> HardNegative {
        let direction = Point(random.uniform(in: 0.33...0.52), 1)
        let scale = random.chance(0.5) ? direction : Point(direction.y, direction.x)
        return ("proportions", Design(fitting: design.elements.map { $0.moved(by: .zero, scaled: scale) }))
    }

    /// Returns two or three copies of a part that differs from the whole logo.
    private func repeated(_ random: inout RandomStream) -> HardNegative {
        let once = Design(fitting: [random.element(of: separableParts)]).elements
        let count = 2 + random.index(below: 2)
        let start = random.uniform(in: 0...360)
        // Two copies need less room than three around the same point.
        let reach = random.uniform(in: 1...1.4) * (count == 2 ? 1 : 1.15)
        let copies = (0..<count).flatMap { copy in
            let direction = Point.direction(degrees: start + 360 * Float(copy) / Float(count))
            return once.map { $0.moved(by: direction * reach) }
        }
        return ("repeated", Design(fitting: copies))
    }

    /// Returns the logo with two parts swapped.
    private func swapped(_ random: inout RandomStream) -> HardNegative {
        var elements = design.elements
        let first = random.element(of: essentialParts)
        let second = (first + 1 + random.index(below: elements.count - 1)) % elements.count
        let (a, b) = (elements[first], elements[second])
        elements[first] = a.fitted(into: b)
        elements[second] = b.fitted(into: a)
        return ("swapped", Design(fitting: elements))
    }

    /// Returns the logo with one part moved away from the others or onto another one.
    private func apart(_ random: inout RandomStream) -> HardNegative {
        let shift = random.direction() * random.uniform(in: 0.45...1.3)
        return ("apart", withOneChanged(&random) { $0.moved(by: shift) })
    }

    /// Returns the logo with one part much larger or smaller.
    private func resized(_ random: inout RandomStream) -> HardNegative {
        let factor = random.chance(0.5) ? random.uniform(in: 0.3...0.6) : random.uniform(in: 1.6...2.4)
        let resized = withOneChanged(&random) {
            $0.moved(by: -$0.center, scaled: Point(repeating: factor)).moved(by: $0.center)
        }
        return ("resized", resized)
    }

    /// Returns the logo with one part replaced by another shape or a letter.
    private func replaced(_ random: inout RandomStream) -> HardNegative {
        let figure = random.chance(0.5) ? Lettering.standard.letter(&random) : Figure([LookAlike.shape(&random)])
        return ("replaced", withOneChanged(&random) { Element(figure: figure, tone: $0.tone).fitted(into: $0) })
    }

    /// Returns the logo with one part changed; if the part was inside another one, it leaves no hole.
    private func withOneChanged(_ random: inout RandomStream, _ change: (Element) -> Element) -> Design {
        let part = random.element(of: essentialParts)
        var elements = elementsWithoutPart[part]
        elements.insert(change(design.elements[part]), at: part)
        return Design(fitting: elements)
    }
}

/// Hard negatives of plain shapes, as large as a logo.
enum LookAlike {
    /// Returns one to four shapes, side by side or one inside the other, in tones of the logo.
    static func design(tones: Int, _ random: inout RandomStream) -> Design {
        func tone() -> Int { random.index(below: max(tones, 1)) }
        let first = Element(figure: Figure([shape(&random)]), tone: tone())
        var elements = [first]
        switch random.index(below: 4) {
        case 0: break
        case 1:
            // A badge: the inner shape has another tone, because with one tone both would be a single silhouette. A recipe has no tones, but may
            // be drawn in two inks. For an image of one tone, both shapes are a single silhouette.
            let figure = random.chance(0.5) ? Lettering.standard.letter(&random) : Figure([shape(&random)])
            let size = random.uniform(in: 0.35...0.6)
            let inner = Element(figure: figure, tone: (first.tone + 1) % max(tones, 2))
            elements.append(inner.moved(by: .zero, scaled: Point(size, size)))
        default:
            for _ in 0...random.index(below: 3) {
                let size = random.uniform(in: 0.3...1)
                let other = Element(figure: random.chance(0.4) ? first.figure : Figure([shape(&random)]), tone: tone())
                let offset = random.direction() * (1.1 + size + random.uniform(in: 0...0.5))
                elements.append(other.moved(by: .zero, scaled: Point(size, size)).moved(by: offset))
            }
        }
        return Design(fitting: elements)
    }

    /// Returns a disc, an ellipse, a square, a rectangle, a triangle, a ring or a bar, with a radius of about 1.
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
    /// The bounding box.
    private var box: (low: Point, high: Point) {
        corners.reduce(into: (low: Point(repeating: .infinity), high: Point(repeating: -.infinity))) { box, corner in
            box.low = Point(min(box.low.x, corner.x), min(box.low.y, corner.y))
            box.high = Point(max(box.high.x, corner.x), max(box.high.y, corner.y))
        }
    }

    /// The centre of the bounding box.
    var center: Point { (box.low + box.high) / 2 }

    /// Returns the element moved to the centre of another one and scaled to its size, with the same aspect ratio.
    fileprivate func fitted(into other: Element) -> Element {
        let (size, targetSize) = (box.high - box.low, other.box.high - other.box.low)
        let factor = max(targetSize.length / max(size.length, 1e-3), 1e-3)
        return moved(by: -center, scaled: Point(repeating: factor)).moved(by: other.center)
    }
}
