internal import ImprintImages

/// A logo's picture taken apart: the connected areas of each of its few colours.
struct ArtworkParts {
    /// The colours that parts have, by tone.
    private(set) var tones: [Color] = []
    /// How many parts there are.
    private(set) var count = 0

    private var image: RasterImage
    /// Which part each pixel belongs to, transparent ones too.
    private var labels: [Int]
    /// The tone of each part.
    private var toneOfPart: [Int] = []
    /// The circle that just holds all that is visible, in pixels.
    private let circle: Circle

    /// The most parts, and the most colours: what is smaller belongs to its neighbours.
    private static let limits = (parts: 12, tones: 6)

    init(_ picture: ArtworkPicture) {
        image = picture.image
        labels = []
        circle = Circle(holding: Self.hull(of: image) { _ in true })
        tones = Self.tones(of: image)
        if picture.keepsBackground {
            // Parts of the logo cannot be told from those of its background.
            labels = [Int](repeating: 0, count: image.width * image.height)
            toneOfPart = [0]
            count = 1
            return
        }
        let toneOfPixel = (0..<(image.width * image.height)).map { place in
            isSolid(place) ? nearestTone(to: image.color(at: place)) : -1
        }
        let areas = ConnectedAreas(toneOfPixel, width: image.width)
        let solid = toneOfPixel.count { $0 >= 0 }
        let kept = areas.sizes.indices
            .filter { areas.sizes[$0] >= max(8, solid / 160) && areas.innerSizes[$0] * 20 >= areas.sizes[$0] }
            .sorted { (areas.sizes[$1], $0) < (areas.sizes[$0], $1) }
            .prefix(Self.limits.parts)
        var partOfArea = [Int](repeating: -1, count: areas.sizes.count)
        for (part, area) in kept.enumerated() { partOfArea[area] = part }
        labels = areas.labels.map { $0 < 0 ? -1 : partOfArea[$0] }
        toneOfPart = kept.map { areas.kinds[$0] }
        count = toneOfPart.count
        if count == 0 {
            // Specks alone: one part.
            labels = labels.map { _ in 0 }
            toneOfPart = [0]
            count = 1
        } else {
            spreadLabels()
        }
    }

    private func isSolid(_ place: Int) -> Bool { image.samples[4 * place + 3] >= 128 }

    /// The commonest colours that differ clearly from each other.
    private static func tones(of image: RasterImage) -> [Color] {
        var counts = [Int](repeating: 0, count: 4096)
        var sums = [Color](repeating: .zero, count: 4096)
        var solid = 0
        for place in 0..<(image.width * image.height) where image.samples[4 * place + 3] >= 128 {
            let (red, green, blue) = (
                Int(image.samples[4 * place]), Int(image.samples[4 * place + 1]), Int(image.samples[4 * place + 2])
            )
            let bin = (red / 16 * 16 + green / 16) * 16 + blue / 16
            counts[bin] += 1
            sums[bin] += image.color(at: place)
            solid += 1
        }
        var tones: [Color] = []
        for bin in counts.indices.sorted(by: { (counts[$1], $0) < (counts[$0], $1) }).prefix(64) where counts[bin] > 0 {
            let color = sums[bin] / Float(counts[bin])
            let isOther = tones.allSatisfy { (($0 - color) * ($0 - color)).sum() > 0.05 }
            if tones.isEmpty || (isOther && counts[bin] * 100 >= solid && tones.count < limits.tones) {
                tones.append(color)
            }
        }
        return tones.isEmpty ? [.zero] : tones
    }

    private func nearestTone(to color: Color) -> Int {
        var (nearest, least) = (0, Float.infinity)
        for (index, tone) in tones.enumerated() {
            let difference = tone - color
            let distance = (difference * difference).sum()
            if distance < least { (nearest, least) = (index, distance) }
        }
        return nearest
    }

    /// Gives every pixel without a part that of the nearest one with a part.
    private mutating func spreadLabels() {
        let (width, height) = (image.width, image.height)
        var front = labels.indices.filter { labels[$0] >= 0 }
        while !front.isEmpty {
            var next: [Int] = []
            for place in front {
                let (row, column) = place.quotientAndRemainder(dividingBy: width)
                for (isInside, neighbor) in [
                    (column > 0, place - 1), (column < width - 1, place + 1), (row > 0, place - width),
                    (row < height - 1, place + width),
                ] where isInside && labels[neighbor] < 0 {
                    labels[neighbor] = labels[place]
                    next.append(neighbor)
                }
            }
            front = next
        }
    }

    /// The parts as a mark.
    func design() -> Design {
        Design(elements: (0..<count).map { Element(figure: figure($0), tone: toneOfPart[$0]) })
    }

    /// The mark without one of its parts; one that lies within another is grown over by that.
    ///
    /// A hole would be left otherwise, which looks like the part where a logo is printed in one colour.
    func elements(without part: Int) -> [Element] {
        var other = self
        let surrounding = contact(of: part).flatMap { $0.share > 0.5 ? $0.part : nil }
        for place in labels.indices where labels[place] == part {
            other.labels[place] = surrounding ?? -1
            if let surrounding { other.recolor(place, tones[toneOfPart[surrounding]]) }
        }
        return (0..<count).filter { $0 != part }.map { Element(figure: other.figure($0), tone: toneOfPart[$0]) }
    }

    /// What is left of the mark on one side of a line through its middle.
    func elements(cutAt side: Point) -> [Element] {
        var other = self
        for place in labels.indices {
            let (row, column) = place.quotientAndRemainder(dividingBy: image.width)
            let pixel = Point(Float(column), Float(row)) + 0.5
            if (pixel - circle.center).dot(side) > 0 { other.labels[place] = -1 }
        }
        return (0..<count).map { Element(figure: other.figure($0), tone: toneOfPart[$0]) }
            .filter { !$0.figure.hull.isEmpty }
    }

    /// The sets of tones of which one may be inked alone where the logo is printed in one colour.
    ///
    /// The others are left blank, which shows them only where they lie within what is inked. Parts that do not touch are
    /// inked together. The list is empty where the logo does not come in one colour.
    var inkedTones: [Set<Int>] {
        let all = Set(toneOfPart)
        let contacts = (0..<count).map { contact(of: $0)?.share ?? 0 }
        guard let largest = contacts.max(), largest > 0.1, all.count > 1 else { return [all] }
        // Dark from light tones, if they are farthest apart.
        let sorted = all.sorted { tones[$0].luminance < tones[$1].luminance }
        let luminances = sorted.map { tones[$0].luminance }
        let steps = zip(luminances.dropFirst(), luminances).map { $0 - $1 }
        guard let step = steps.max(), step > 0.12, let split = steps.firstIndex(of: step) else { return [] }
        let dark = Set(sorted[...split])
        return [dark, all.subtracting(dark)].filter { inked in
            (0..<count).allSatisfy { inked.contains(toneOfPart[$0]) || contacts[$0] > 0.55 }
        }
    }

    private mutating func recolor(_ place: Int, _ color: Color) {
        for channel in 0..<3 { image.samples[4 * place + channel] = UInt8(color[channel] * 255 + 0.5) }
    }

    /// What share of the outline of a part touches other parts, and which of them most; nil for a part without outline.
    private func contact(of part: Int) -> (part: Int, share: Float)? {
        var touched = [Int](repeating: 0, count: count)
        var length = 0
        for row in 0..<image.height {
            for column in 0..<image.width {
                let place = row * image.width + column
                guard labels[place] == part, isSolid(place) else { continue }
                for neighbor in [
                    column > 0 ? place - 1 : nil, column < image.width - 1 ? place + 1 : nil,
                    row > 0 ? place - image.width : nil, row < image.height - 1 ? place + image.width : nil,
                ] {
                    if let neighbor, isSolid(neighbor) {
                        guard labels[neighbor] != part else { continue }
                        touched[labels[neighbor]] += 1
                    }
                    length += 1
                }
            }
        }
        guard length > 0, let most = touched.indices.max(by: { touched[$0] < touched[$1] }) else { return nil }
        return (most, Float(touched.reduce(0, +)) / Float(length))
    }

    private func figure(_ part: Int) -> Figure {
        var (left, top, right, bottom) = (image.width, image.height, 0, 0)
        for row in 0..<image.height {
            for column in 0..<image.width {
                let place = row * image.width + column
                guard labels[place] == part, image.samples[4 * place + 3] > 0 else { continue }
                (left, right) = (min(left, column), max(right, column))
                (top, bottom) = (min(top, row), max(bottom, row))
            }
        }
        let width = max(right - left + 1, 1)
        var texels: [SIMD4<UInt8>] = []
        for row in top...max(bottom, top) {
            for column in left..<(left + width) {
                let place = min(row, image.height - 1) * image.width + min(column, image.width - 1)
                texels.append(labels[place] == part ? image.premultiplied(at: place) : .zero)
            }
        }
        let unit = 1 / circle.radius
        func artwork(_ x: Int, _ y: Int) -> Point { (Point(Float(x), Float(y)) - circle.center) * unit }
        let hull = Self.hull(of: image) { labels[$0] == part }.map { ($0 - circle.center) * unit }
        return Figure(
            field(part, left...max(right, left), top...max(bottom, top)),
            picture: Pyramid(texels, width: width, origin: artwork(left, top), texelSide: unit), hull: hull)
    }

    /// The distance to a part, on a grid of about a hundred samples for the whole mark, and a margin around it.
    private func field(_ part: Int, _ columns: ClosedRange<Int>, _ rows: ClosedRange<Int>) -> DistanceField {
        let step = max(1, (max(image.width, image.height) + 111) / 112)
        let margin = max(2, Int(0.35 * circle.radius) / step)
        let width = columns.count / step + 1 + 2 * margin
        let height = rows.count / step + 1 + 2 * margin
        var mask = [Bool](repeating: false, count: width * height)
        for row in margin..<(height - margin) {
            let y = rows.lowerBound + (row - margin) * step + step / 2
            guard y < image.height else { continue }
            for column in margin..<(width - margin) {
                let x = columns.lowerBound + (column - margin) * step + step / 2
                guard x < image.width else { continue }
                let place = y * image.width + x
                mask[row * width + column] = labels[place] == part && isSolid(place)
            }
        }
        let first = Point(
            Float(columns.lowerBound - margin * step + step / 2) + 0.5,
            Float(rows.lowerBound - margin * step + step / 2) + 0.5)
        return DistanceField(
            mask: mask, width: width, origin: (first - circle.center) / circle.radius,
            step: Float(step) / circle.radius)
    }

    /// The hull of the pixels that are visible and wanted, in pixels.
    private static func hull(of image: RasterImage, isWanted: (Int) -> Bool) -> [Point] {
        var points: [Point] = []
        for row in 0..<image.height {
            func isVisible(_ column: Int) -> Bool {
                let place = row * image.width + column
                return image.samples[4 * place + 3] >= 32 && isWanted(place)
            }
            guard let first = (0..<image.width).first(where: isVisible),
                let last = (0..<image.width).last(where: isVisible)
            else { continue }
            for (column, line) in [(first, row), (first, row + 1), (last + 1, row), (last + 1, row + 1)] {
                points.append(Point(Float(column), Float(line)))
            }
        }
        return convexHull(of: points)
    }
}

extension RasterImage {
    fileprivate func color(at place: Int) -> Color {
        Color(Float(samples[4 * place]), Float(samples[4 * place + 1]), Float(samples[4 * place + 2])) / 255
    }

    fileprivate func premultiplied(at place: Int) -> SIMD4<UInt8> {
        let alpha = Int(samples[4 * place + 3])
        func times(_ channel: Int) -> UInt8 { UInt8((Int(samples[4 * place + channel]) * alpha + 127) / 255) }
        return SIMD4(times(0), times(1), times(2), UInt8(alpha))
    }
}

/// The connected areas of pixels of the same kind; neighbours are those to the left, right, above and below.
private struct ConnectedAreas {
    /// The area of each pixel; −1 for those of no kind.
    private(set) var labels: [Int]
    /// The kind of each area.
    private(set) var kinds: [Int] = []
    /// The pixels of each area.
    private(set) var sizes: [Int] = []
    /// Those of them whose eight neighbours belong to it too: none in the seams between colours.
    private(set) var innerSizes: [Int] = []

    /// Finds the areas; pixels of a negative kind belong to none.
    init(_ kindOfPixel: [Int], width: Int) {
        let height = kindOfPixel.count / width
        labels = Array(repeating: -1, count: kindOfPixel.count)
        for start in kindOfPixel.indices where kindOfPixel[start] >= 0 && labels[start] < 0 {
            let kind = kindOfPixel[start]
            var pending = [start]
            var (size, innerSize) = (0, 0)
            labels[start] = kinds.count
            while let place = pending.popLast() {
                size += 1
                let (row, column) = place.quotientAndRemainder(dividingBy: width)
                var alike = 0
                for y in max(row - 1, 0)...min(row + 1, height - 1) {
                    for x in max(column - 1, 0)...min(column + 1, width - 1) {
                        let neighbor = y * width + x
                        guard kindOfPixel[neighbor] == kind else { continue }
                        alike += 1
                        if (y == row || x == column) && labels[neighbor] < 0 {
                            labels[neighbor] = kinds.count
                            pending.append(neighbor)
                        }
                    }
                }
                if alike == 9 { innerSize += 1 }
            }
            kinds.append(kind)
            sizes.append(size)
            innerSizes.append(innerSize)
        }
    }
}
