internal import ImprintImages

/// The parts of an artwork image: the connected areas of each of its main colours (tones).
struct ArtworkParts {
    /// The colours of the tones.
    private(set) var tones: [Color] = []
    /// The number of parts.
    private(set) var count = 0

    private var image: RasterImage
    /// The part of each pixel, also of transparent pixels.
    private var partOfPixel: [Int]
    /// The tone of each part.
    private var toneOfPart: [Int] = []
    /// The smallest enclosing circle of the visible pixels, in pixels.
    private let circle: Circle

    /// The maximum numbers of parts and tones; smaller areas are merged into their neighbours.
    private static let limits = (parts: 12, tones: 6)

    /// Creates the parts of an artwork image.
    init(_ artwork: ArtworkImage) {
        image = artwork.image
        partOfPixel = []
        circle = Circle(enclosing: Self.hull(of: image) { _ in true })
        tones = Self.tones(of: image)
        if artwork.keepsBackground {
            // Parts of the logo cannot be distinguished from the background, so the whole image is one part.
            partOfPixel = [Int](repeating: 0, count: image.width * image.height)
            toneOfPart = [0]
            count = 1
            return
        }
        let toneOfPixel = (0..<(image.width * image.height)).map { index in
            isSolid(index) ? nearestTone(to: image.color(at: index)) : -1
        }
        let components = ConnectedComponents(toneOfPixel, width: image.width)
        let solid = toneOfPixel.count { $0 >= 0 }
        let kept = components.sizes.indices
            .filter {
                components.sizes[$0] >= max(8, solid / 160) && components.innerSizes[$0] * 20 >= components.sizes[$0]
            }
            .sorted { (components.sizes[$1], $0) < (components.sizes[$0], $1) }
            .prefix(Self.limits.parts)
        var partOfComponent = [Int](repeating: -1, count: components.sizes.count)
        for (part, component) in kept.enumerated() { partOfComponent[component] = part }
        partOfPixel = components.componentOfPixel.map { $0 < 0 ? -1 : partOfComponent[$0] }
        toneOfPart = kept.map { components.toneOfComponent[$0] }
        count = toneOfPart.count
        if count == 0 {
            // If there are only specks, they form one part.
            partOfPixel = partOfPixel.map { _ in 0 }
            toneOfPart = [0]
            count = 1
        } else {
            spreadParts()
        }
    }

    private func isSolid(_ index: Int) -> Bool { image.samples[4 * index + 3] >= 128 }

    /// Returns the most frequent colours that differ clearly from each other.
    private static func tones(of image: RasterImage) -> [Color] {
        var counts = [Int](repeating: 0, count: 4096)
        var sums = [Color](repeating: .zero, count: 4096)
        var solid = 0
        for index in 0..<(image.width * image.height) where image.samples[4 * index + 3] >= 128 {
            let (red, green, blue) = (
                Int(image.samples[4 * index]), Int(image.samples[4 * index + 1]), Int(image.samples[4 * index + 2])
            )
            let bin = (red / 16 * 16 + green / 16) * 16 + blue / 16
            counts[bin] += 1
            sums[bin] += image.color(at: index)
            solid += 1
        }
        var tones: [Color] = []
        for bin in counts.indices.sorted(by: { (counts[$1], $0) < (counts[$0], $1) }).prefix(64) where counts[bin] > 0 {
            let color = sums[bin] / Float(counts[bin])
            let isDistinct = tones.allSatisfy { (($0 - color) * ($0 - color)).sum() > 0.05 }
            if tones.isEmpty || (isDistinct && counts[bin] * 100 >= solid && tones.count < limits.tones) {
                tones.append(color)
            }
        }
        return tones.isEmpty ? [.zero] : tones
    }

    private func nearestTone(to color: Color) -> Int {
        var (nearest, minimum) = (0, Float.infinity)
        for (index, tone) in tones.enumerated() {
            let difference = tone - color
            let distance = (difference * difference).sum()
            if distance < minimum { (nearest, minimum) = (index, distance) }
        }
        return nearest
    }

    /// Assigns every pixel without a part to the part of the nearest pixel that has one.
    private mutating func spreadParts() {
        let (width, height) = (image.width, image.height)
        var front = partOfPixel.indices.filter { partOfPixel[$0] >= 0 }
        while !front.isEmpty {
            var next: [Int] = []
            for index in front {
                let (row, column) = index.quotientAndRemainder(dividingBy: width)
                for (isInside, neighbor) in [
                    (column > 0, index - 1), (column < width - 1, index + 1), (row > 0, index - width),
                    (row < height - 1, index + width),
                ] where isInside && partOfPixel[neighbor] < 0 {
                    partOfPixel[neighbor] = partOfPixel[index]
                    next.append(neighbor)
                }
            }
            front = next
        }
    }

    /// Returns the whole logo.
    func design() -> Design {
        Design(elements: (0..<count).map { Element(figure: figure($0), tone: toneOfPart[$0]) })
    }

    /// Returns the logo without one of its parts; a part inside another one is filled with the tone of that one.
    ///
    /// Otherwise it would leave a hole, which looks like the part itself if the logo is printed in a single ink.
    func elements(without part: Int) -> [Element] {
        var other = self
        let surrounding = contact(of: part).flatMap { $0.share > 0.5 ? $0.part : nil }
        for index in partOfPixel.indices where partOfPixel[index] == part {
            other.partOfPixel[index] = surrounding ?? -1
            if let surrounding { other.recolor(index, tones[toneOfPart[surrounding]]) }
        }
        return (0..<count).filter { $0 != part }.map { Element(figure: other.figure($0), tone: toneOfPart[$0]) }
    }

    /// Returns the share of a part in the area of all parts, 0...1.
    func share(of part: Int) -> Float {
        Float(partOfPixel.count { $0 == part }) / Float(max(partOfPixel.count { $0 >= 0 }, 1))
    }

    /// Returns one half of the logo: the elements on one side of a line through its centre.
    func elements(cutAt side: Point) -> [Element] {
        var other = self
        for index in partOfPixel.indices {
            let (row, column) = index.quotientAndRemainder(dividingBy: image.width)
            let pixel = Point(Float(column), Float(row)) + 0.5
            if (pixel - circle.center).dot(side) > 0 { other.partOfPixel[index] = -1 }
        }
        return (0..<count).map { Element(figure: other.figure($0), tone: toneOfPart[$0]) }
            .filter { !$0.figure.hull.isEmpty }
    }

    /// The sets of tones that a single ink can print; one set is printed, and the other tones are left blank.
    ///
    /// A blank part is visible only inside inked parts. If no parts touch, the only set contains all tones. The list is empty if
    /// the logo is not recognizable in a single ink.
    var inkedTones: [Set<Int>] {
        let all = Set(toneOfPart)
        let contacts = (0..<count).map { contact(of: $0)?.share ?? 0 }
        guard let largest = contacts.max(), largest > 0.1, all.count > 1 else { return [all] }
        // Split dark from light tones at the largest difference in luminance.
        let sorted = all.sorted { tones[$0].luminance < tones[$1].luminance }
        let luminances = sorted.map { tones[$0].luminance }
        let steps = zip(luminances.dropFirst(), luminances).map { $0 - $1 }
        guard let step = steps.max(), step > 0.12, let split = steps.firstIndex(of: step) else { return [] }
        let dark = Set(sorted[...split])
        return [dark, all.subtracting(dark)].filter { inked in
            (0..<count).allSatisfy { inked.contains(toneOfPart[$0]) || contacts[$0] > 0.55 }
        }
    }

    private mutating func recolor(_ index: Int, _ color: Color) {
        for channel in 0..<3 { image.samples[4 * index + channel] = UInt8(color[channel] * 255 + 0.5) }
    }

    /// Returns the fraction of a part's outline that touches other parts, and the part that it touches most; nil without an outline.
    private func contact(of part: Int) -> (part: Int, share: Float)? {
        var touched = [Int](repeating: 0, count: count)
        var length = 0
        for row in 0..<image.height {
            for column in 0..<image.width {
                let index = row * image.width + column
                guard partOfPixel[index] == part, isSolid(index) else { continue }
                for neighbor in [
                    column > 0 ? index - 1 : nil, column < image.width - 1 ? index + 1 : nil,
                    row > 0 ? index - image.width : nil, row < image.height - 1 ? index + image.width : nil,
                ] {
                    if let neighbor, isSolid(neighbor) {
                        guard partOfPixel[neighbor] != part else { continue }
                        touched[partOfPixel[neighbor]] += 1
                    }
                    length += 1
                }
            }
        }
        guard length > 0, let most = touched.indices.max(by: { touched[$0] < touched[$1] }) else { return nil }
        return (most, Float(touched.reduce(0, +)) / Float(length))
    }

    /// Returns the figure of a part, in units of the artwork.
    private func figure(_ part: Int) -> Figure {
        var (left, top, right, bottom) = (image.width, image.height, 0, 0)
        for row in 0..<image.height {
            for column in 0..<image.width {
                let index = row * image.width + column
                guard partOfPixel[index] == part, image.samples[4 * index + 3] > 0 else { continue }
                (left, right) = (min(left, column), max(right, column))
                (top, bottom) = (min(top, row), max(bottom, row))
            }
        }
        let width = max(right - left + 1, 1)
        var texels: [SIMD4<UInt8>] = []
        for row in top...max(bottom, top) {
            for column in left..<(left + width) {
                let index = min(row, image.height - 1) * image.width + min(column, image.width - 1)
                texels.append(partOfPixel[index] == part ? image.premultiplied(at: index) : .zero)
            }
        }
        let unit = 1 / circle.radius
        func artwork(_ x: Int, _ y: Int) -> Point { (Point(Float(x), Float(y)) - circle.center) * unit }
        let hull = Self.hull(of: image) { partOfPixel[$0] == part }.map { ($0 - circle.center) * unit }
        return Figure(
            field(part, left...max(right, left), top...max(bottom, top)),
            mipmap: Mipmap(texels, width: width, origin: artwork(left, top), texelSide: unit), hull: hull)
    }

    /// Returns the distance field of a part, with about a hundred samples per side of the whole logo and a margin.
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
                let index = y * image.width + x
                mask[row * width + column] = partOfPixel[index] == part && isSolid(index)
            }
        }
        let first = Point(
            Float(columns.lowerBound - margin * step + step / 2) + 0.5,
            Float(rows.lowerBound - margin * step + step / 2) + 0.5)
        return DistanceField(
            mask: mask, width: width, origin: (first - circle.center) / circle.radius,
            step: Float(step) / circle.radius)
    }

    /// Returns the convex hull of the visible pixels for which `isIncluded` is true, in pixels.
    private static func hull(of image: RasterImage, isIncluded: (Int) -> Bool) -> [Point] {
        var points: [Point] = []
        for row in 0..<image.height {
            func isVisible(_ column: Int) -> Bool {
                let index = row * image.width + column
                return image.samples[4 * index + 3] >= 32 && isIncluded(index)
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
    fileprivate func color(at index: Int) -> Color {
        Color(Float(samples[4 * index]), Float(samples[4 * index + 1]), Float(samples[4 * index + 2])) / 255
    }

    fileprivate func premultiplied(at index: Int) -> SIMD4<UInt8> {
        let alpha = Int(samples[4 * index + 3])
        func times(_ channel: Int) -> UInt8 { UInt8((Int(samples[4 * index + channel]) * alpha + 127) / 255) }
        return SIMD4(times(0), times(1), times(2), UInt8(alpha))
    }
}

/// The 4-connected components of an image: areas of adjacent pixels of the same tone.
private struct ConnectedComponents {
    /// The component of each pixel; −1 for pixels without a tone.
    private(set) var componentOfPixel: [Int]
    /// The tone of each component.
    private(set) var toneOfComponent: [Int] = []
    /// The number of pixels of each component.
    private(set) var sizes: [Int] = []
    /// The number of pixels of each component whose eight neighbours have the same tone; small for seams between colours.
    private(set) var innerSizes: [Int] = []

    /// Creates the components of an image, given the tone of each pixel; pixels of a negative tone belong to no component.
    init(_ toneOfPixel: [Int], width: Int) {
        let height = toneOfPixel.count / width
        componentOfPixel = Array(repeating: -1, count: toneOfPixel.count)
        for start in toneOfPixel.indices where toneOfPixel[start] >= 0 && componentOfPixel[start] < 0 {
            let tone = toneOfPixel[start]
            var pending = [start]
            var (size, innerSize) = (0, 0)
            componentOfPixel[start] = toneOfComponent.count
            while let index = pending.popLast() {
                size += 1
                let (row, column) = index.quotientAndRemainder(dividingBy: width)
                var alike = 0
                for y in max(row - 1, 0)...min(row + 1, height - 1) {
                    for x in max(column - 1, 0)...min(column + 1, width - 1) {
                        let neighbor = y * width + x
                        guard toneOfPixel[neighbor] == tone else { continue }
                        alike += 1
                        if (y == row || x == column) && componentOfPixel[neighbor] < 0 {
                            componentOfPixel[neighbor] = toneOfComponent.count
                            pending.append(neighbor)
                        }
                    }
                }
                if alike == 9 { innerSize += 1 }
            }
            toneOfComponent.append(tone)
            sizes.append(size)
            innerSizes.append(innerSize)
        }
    }
}
