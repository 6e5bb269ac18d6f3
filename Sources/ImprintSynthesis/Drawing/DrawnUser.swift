internal import ImprintCore

extension DrawingRecipe {
    /// Returns the recipe of a simulated user, who has a personal variant of the logo, hard negatives and drawing style.
    ///
    /// All images of a user show the same few logos: one for the first label, and two or three for every other label (fewer if the
    /// recipe has fewer kinds). The logo is one of `compositing.logos`. With two labels, the others are from
    /// `compositing.hardNegatives`. These vary more and are more similar to the logo than the logos of the labels, which are used
    /// if there is no `compositing`. If possible, at least one hard negative is of a kind that no label of the recipe shows. A logo
    /// with a number in the recipe keeps it.
    ///
    /// Every share is 0 or 1, and every range is a half or a quarter of the recipe's range. The images of a user are therefore more
    /// alike than those of the recipe. The label names and the size do not change. The default count is 40 images per label.
    ///
    /// - Parameter number: The number of the user, from 1; the same number gives the same recipe.
    package func ofUser(_ number: Int) -> DrawingRecipe {
        precondition(number >= 1, "the number of a user must be at least 1, not \(number)")
        var random = RandomStream(seed: 0, "user", number)
        return DrawingRecipe(
            format: format, name: "\(name)-user-\(number)",
            description: "The pictures of one invented person, user \(number) of \(name).", size: size,
            labels: labels(ofUser: &random), count: 40 * labels.count,
            // Images with the same seed share positions and colours, so every user needs another seed.
            seed: random.next() >> 32,
            ranges: Ranges(ofUser: &random, within: ranges), shares: Shares(ofUser: &random), compositing: nil)
    }

    private func labels(ofUser random: inout RandomStream) -> [Label] {
        let logoCandidates = compositing?.logos ?? labels[0].logos
        let hardNegatives = labels.count == 2 ? compositing?.hardNegatives : nil
        let logoKinds = Set((logoCandidates + labels[0].logos).map(\.kind))
        let known = Set(labels.flatMap(\.logos).map(\.kind))
        return labels.enumerated().map { position, label in
            let logos =
                position == 0
                ? logoCandidates.chosen(1, known: known, &random)
                : (hardNegatives ?? label.logos).chosen(
                    2 + random.index(below: 2), without: logoKinds, known: known, &random)
            return Label(name: label.name, logos: logos)
        }
    }
}

extension DrawingRecipe.Ranges {
    fileprivate init(ofUser random: inout RandomStream, within ranges: Self) {
        span = ranges.span.part(0.5, &random)
        rotationDegrees = ranges.rotationDegrees.part(0.25, &random)
        tiltDegrees = ranges.tiltDegrees.part(0.5, &random)
        blur = ranges.blur.part(0.25, &random)
        noise = ranges.noise.part(0.25, &random)
    }
}

extension DrawingRecipe.Shares {
    fileprivate init(ofUser random: inout RandomStream) {
        func zeroOrOne(_ probability: Float) -> Float { random.chance(probability) ? 1 : 0 }
        let style = random.uniform()
        outlined = style < 0.3 ? 1 : 0
        hatched = (0.3..<0.5).contains(style) ? 1 : 0
        // Worn ink is the rarest style, because it leaves little of a small shape.
        worn = (0.5..<0.65).contains(style) ? 1 : 0
        handDrawn = zeroOrOne(0.5)
        plate = zeroOrOne(0.35)
        lightInk = zeroOrOne(0.4)
        twoColors = zeroOrOne(0.35)
        busyBackground = zeroOrOne(0.5)
    }
}

extension [DrawingRecipe.WeightedLogo] {
    /// Chooses up to `count` logos of different kinds by weight, and returns them as fixed logos of equal weight.
    ///
    /// The first is of a kind that is not in `known`, if possible. The kinds in `others` and `nothing` are excluded, unless no other
    /// kind remains.
    fileprivate func chosen(
        _ count: Int, without others: Set<LogoKind> = [], known: Set<LogoKind>, _ random: inout RandomStream
    ) -> Self {
        let suitable = filter { $0.kind != .nothing && !others.contains($0.kind) }
        var remaining = suitable.isEmpty ? self : suitable
        var chosen: Self = []
        while chosen.count < count && !remaining.isEmpty {
            let new = remaining.filter { !known.contains($0.kind) }
            let choice = (chosen.isEmpty && !new.isEmpty ? new : remaining).choice(&random)
            chosen.append(.init(kind: choice.kind, weight: 1, number: choice.number ?? Int(random.next() >> 32)))
            remaining.removeAll { $0.kind == choice.kind }
        }
        return chosen
    }
}

extension ClosedRange<Float> {
    /// Returns a random part of the range whose width is `fraction` of the whole.
    fileprivate func part(_ fraction: Float, _ random: inout RandomStream) -> Self {
        let width = (upperBound - lowerBound) * fraction
        let start = lowerBound + (upperBound - lowerBound - width) * random.uniform()
        return start...Swift.min(start + width, upperBound)
    }
}
