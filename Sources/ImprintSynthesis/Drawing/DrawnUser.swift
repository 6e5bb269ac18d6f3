internal import ImprintCore

extension DrawingRecipe {
    /// The recipe of the pictures of one invented person, who has an own style of the logo and own hard negatives.
    ///
    /// In every picture of a user the first label shows the same mark, and each other label one of two or three (fewer where the recipe
    /// has fewer kinds), which are the same in every picture as well. The first is one of `compositing.marks` and the others, where there
    /// are two labels, are of `compositing.nearMisses`: these vary more and come nearer than the labels' own, which are taken where
    /// there is no `compositing`. At least one hard negative is of a kind that no label of the recipe shows, where there is such a kind. A
    /// mark that has a number in the recipe keeps it.
    ///
    /// Every share is 0 or 1 and every range a half or a quarter of the recipe's, so that the pictures of a user are more alike than those
    /// of the recipe. The names of the labels and the size stay; there are 40 pictures a label.
    ///
    /// - Parameter number: Which user, from 1; the same number gives the same recipe.
    package func ofUser(_ number: Int) -> DrawingRecipe {
        precondition(number >= 1, "users are counted from 1, there is no \(number)")
        var random = RandomStream(seed: 0, "user", number)
        return DrawingRecipe(
            format: format, name: "\(name)-user-\(number)",
            description: "The pictures of one invented person, user \(number) of \(name).", size: size,
            labels: labels(ofUser: &random), count: 40 * labels.count,
            // Not the number itself: pictures of the same seed have their places and colours in common.
            seed: random.next() >> 32,
            ranges: Ranges(ofUser: &random, within: ranges), shares: Shares(ofUser: &random), compositing: nil)
    }

    private func labels(ofUser random: inout RandomStream) -> [Label] {
        let logo = compositing?.marks ?? labels[0].marks
        let nearMisses = labels.count == 2 ? compositing?.nearMisses : nil
        let ofLogo = Set((logo + labels[0].marks).map(\.kind))
        let known = Set(labels.flatMap(\.marks).map(\.kind))
        return labels.enumerated().map { position, label in
            let marks =
                position == 0
                ? logo.chosen(1, known: known, &random)
                : (nearMisses ?? label.marks).chosen(2 + random.index(below: 2), without: ofLogo, known: known, &random)
            return Label(name: label.name, marks: marks)
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
        func isSo(_ probability: Float) -> Float { random.chance(probability) ? 1 : 0 }
        let style = random.uniform()
        outlined = style < 0.3 ? 1 : 0
        hatched = (0.3..<0.5).contains(style) ? 1 : 0
        // The least often: of a small shape little is left.
        worn = (0.5..<0.65).contains(style) ? 1 : 0
        handDrawn = isSo(0.5)
        plate = isSo(0.35)
        lightInk = isSo(0.4)
        twoColors = isSo(0.35)
        busyBackground = isSo(0.5)
    }
}

extension [DrawingRecipe.WeightedMark] {
    /// At most `count` of them, of different kinds, chosen by weight, from then on alike often and the same in every picture.
    ///
    /// The first is of a kind that is not `known`, if there is one. Nothing and the kinds of `others` are left out, unless there is
    /// nothing else.
    fileprivate func chosen(
        _ count: Int, without others: Set<MarkKind> = [], known: Set<MarkKind>, _ random: inout RandomStream
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
    /// A part of the range that is `share` as wide, at a random place.
    fileprivate func part(_ share: Float, _ random: inout RandomStream) -> Self {
        let width = (upperBound - lowerBound) * share
        let start = lowerBound + (upperBound - lowerBound - width) * random.uniform()
        return start...Swift.min(start + width, upperBound)
    }
}
