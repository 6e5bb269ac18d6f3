internal import ImprintNetwork

/// What moves numbers, or only looks at them in another order.
extension NetworkAssembler {
    /// The activation as layers over pictures take it: batch, channels, height, width.
    func picture(_ x: SourceActivation, for name: String) throws(ImportError.Problem) -> SourceActivation {
        let expected: [Axis] = [.batch, .channels, .height, .width]
        let fits =
            x.axes.count == 4
            && zip(x.axes, expected).allSatisfy { found, wanted in
                found == wanted || (x.length(of: found) == 1 && x.length(of: wanted) == 1)
            }
        guard fits else {
            throw .unsupported([
                .init(
                    operation: "axes", node: name,
                    reason: "it reads \(x.dimensions) as batch, channels, height and width, found \(x.axesInWords)")
            ])
        }
        var x = x
        x.axes = expected
        return x
    }

    /// The axes before one as the first axis, the others as the second.
    func flattenToTwoAxes(
        _ x: SourceActivation, at axis: Int, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let place = axis < 0 ? axis + x.axes.count : axis
        guard (0...x.axes.count).contains(place) else {
            throw .malformed(reason: "\(name) has the axis \(axis) of \(x.dimensions)")
        }
        let dimensions = x.dimensions
        return try reshape(x, to: [dimensions[..<place].reduce(1, *), dimensions[place...].reduce(1, *)], named: name)
    }

    /// The same without some axes of one place; without all of them where `axes` is `nil`.
    func squeeze(
        _ x: SourceActivation, axes: [Int]?, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let axes = axes ?? x.axes.indices.filter { x.dimensions[$0] == 1 }
        let places = Set(axes.compactMap(x.place))
        guard places.count == axes.count, places.allSatisfy({ x.dimensions[$0] == 1 }) else {
            throw .malformed(reason: "\(name) drops the axes \(axes) of \(x.dimensions)")
        }
        var x = x
        x.axes = x.axes.indices.filter { !places.contains($0) }.map { x.axes[$0] }
        return x
    }

    /// The same with axes of one place, which are counted among those of the result.
    func unsqueeze(
        _ x: SourceActivation, axes: [Int], named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let rank = x.axes.count + axes.count
        guard rank <= Self.greatestRank else {
            throw .exceedsLimit(reason: "\(name) has \(rank) axes, expected at most \(Self.greatestRank)")
        }
        let places = Set(axes.map { $0 < 0 ? $0 &+ rank : $0 })
        guard places.count == axes.count, places.allSatisfy({ (0..<rank).contains($0) }) else {
            throw .malformed(reason: "\(name) adds the axes \(axes) to \(x.dimensions)")
        }
        var x = x
        for place in places.sorted() { x.axes.insert(.unit, at: place) }
        return x
    }

    /// The same numbers with axes of other lengths, as far as that joins, drops or inserts axes, or divides channels.
    func reshape(
        _ x: SourceActivation, to dimensions: [Int], named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        guard dimensions.count <= Self.greatestRank else {
            throw .exceedsLimit(
                reason: "\(name) has \(dimensions.count) axes, expected at most \(Self.greatestRank)")
        }
        var rest = x.longAxes[...]
        var axes: [Axis] = []
        for (place, length) in dimensions.enumerated() {
            if rest.first == .channels, let lengths = divided(x.shape.channels, among: dimensions[place...]) {
                rest.replaceSubrange(..<(rest.startIndex + 1), with: lengths.indices.map { .part($0, of: lengths) })
            }
            guard length != 1 else {
                // The batch is wherever the first axis of one is.
                axes.append(axes.contains(.batch) ? .unit : .batch)
                continue
            }
            var parts: [Axis] = []
            var product = 1
            while product < length, let next = rest.first {
                parts.append(next)
                product *= x.length(of: next)
                rest = rest.dropFirst()
            }
            guard product == length else {
                throw .unsupported([
                    .init(operation: "reshape", node: name, reason: "from \(x.dimensions) to \(dimensions)")
                ])
            }
            axes.append(parts.count == 1 ? parts[0] : .flat(parts))
        }
        guard rest.isEmpty else {
            throw .malformed(reason: "\(name) reshapes \(x.dimensions) to \(dimensions), which has fewer numbers")
        }
        return SourceActivation(node: x.node, shape: x.shape, axes: axes)
    }

    /// The first lengths of more than 1, of which there are several, that make up all channels; nil if these are not divided.
    private func divided(_ channels: Int, among dimensions: ArraySlice<Int>) -> [Int]? {
        var (lengths, product): ([Int], Int) = ([], 1)
        for length in dimensions where length > 1 && product < channels {
            guard channels % length == 0 else { return nil }
            lengths.append(length)
            product *= length
        }
        return lengths.count > 1 && product == channels ? lengths : nil
    }

    /// The same with whole channels, where an axis has all the parts that they were divided into: put in the order that these have now, which
    /// is how groups of channels are shuffled.
    mutating func joiningChannels(
        of x: SourceActivation, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        for (place, axis) in x.axes.enumerated() {
            guard case .flat(let parts) = axis, case .part(_, let lengths) = parts.first else { continue }
            let whole = lengths.indices.map { Axis.part($0, of: lengths) }
            guard parts.count == whole.count, Set(parts) == Set(whole) else { continue }
            var result = x
            result.axes[place] = .channels
            guard parts != whole else { return result }
            let order = memoryOrder(of: SourceActivation(node: x.node, shape: x.shape, axes: [axis]))
            return try add(SelectChannels(channels: order), named: name, to: [result])
        }
        return x
    }

    /// All numbers of an image in one axis, after that of the batch.
    func flatten(_ x: SourceActivation) -> SourceActivation {
        let long = x.longAxes
        let axis: Axis = long.count > 1 ? .flat(long) : long.first ?? .channels
        return SourceActivation(node: x.node, shape: x.shape, axes: [.batch, axis])
    }
}

extension NetworkAssembler {
    /// Several tensors one after the other along an axis.
    mutating func concatenate(
        _ parts: [SourceActivation], along axis: Int, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        guard let first = parts.first, let place = first.place(ofAxis: axis) else {
            throw .malformed(reason: "\(name) joins nothing, or along an axis \(axis) that is not there")
        }
        guard parts.count > 1 else { return first }
        var parts = parts
        for (index, part) in parts.enumerated() where part.axes.indices.contains(place) {
            guard case .flat = part.axes[place], part.isFlat else { continue }
            parts[index] = try vector(part, named: name)
            parts[index].axes = part.axes
            parts[index].axes[place] = .channels
        }
        let channels = parts.compactMap { $0.axes.count == first.axes.count ? $0.withChannels(at: place) : nil }
        guard channels.count == parts.count,
            channels.allSatisfy({ part in
                zip(part.axes, channels[0].axes).allSatisfy { $0 == $1 || part.length(of: $0) == 1 }
            })
        else {
            throw .unsupported([
                .init(
                    operation: "concat", node: name,
                    reason:
                        "along axis \(axis) of \(parts.map(\.dimensions)), expected the channels of tensors with the same axes"
                )
            ])
        }
        return try add(Concat(), named: name, to: channels, axes: channels[0].axes)
    }

    /// All numbers of an image as channels, in the order of the source's axes.
    mutating func vector(
        _ x: SourceActivation, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        guard !x.isVector else { return SourceActivation(node: x.node, shape: x.shape, axes: [.batch, .channels]) }
        let flat = try add(Flatten(), named: "\(name).flatten", to: [x], axes: [.batch, .channels])
        // A list of places, and the runs that it is made of.
        try reserve(x.shape.count * 4 * MemoryLayout<Int>.stride, for: name)
        let order = memoryOrder(of: x)
        if zip(order, order.indices).allSatisfy({ $0 == $1 }) { return flat }
        return try add(SelectChannels(channels: order), named: "\(name).order", to: [flat])
    }

    /// All numbers of an image as channels, which are divided into the axes that it has.
    mutating func dividedVector(
        _ x: SourceActivation, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let lengths = x.longAxes.map { x.length(of: $0) }
        var y = try vector(x, named: name)
        guard lengths.count > 1, !x.isFlat else {
            y.axes = x.axes.map { x.length(of: $0) > 1 ? .channels : $0 == .batch ? .batch : .unit }
            return y
        }
        var parts = lengths.indices.map { Axis.part($0, of: lengths) }[...]
        y.axes = x.axes.map { axis in
            guard x.length(of: axis) > 1 else { return axis == .batch ? .batch : .unit }
            guard case .flat(let flat) = axis else { return parts.removeFirst() }
            return .flat(flat.map { _ in parts.removeFirst() })
        }
        return y
    }

    /// Some numbers along an axis.
    mutating func select(
        _ x: SourceActivation, along axis: Int, _ places: some Sequence<Int>, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        // One after the other: a few bytes of a file may stand for more places than memory has.
        var (count, isWhole) = (0, true)
        let place = x.place(ofAxis: axis)
        let length = place.map { x.dimensions[$0] } ?? 0
        for found in places {
            guard (0..<length).contains(found) else {
                throw .malformed(reason: "\(name) takes index \(found) along axis \(axis) of \(x.dimensions)")
            }
            isWhole = isWhole && found == count
            count += 1
            guard count <= Self.greatestPlaceCount else {
                throw .exceedsLimit(
                    reason:
                        "\(name) takes more than \(Self.greatestPlaceCount) places of \(x.dimensions), expected channels"
                )
            }
        }
        guard let place else {
            throw .malformed(reason: "\(name) has the axis \(axis) of \(x.dimensions)")
        }
        if isWhole && count == length { return x }
        guard count > 0, let x = x.withChannels(at: place) else {
            let reason = count > 0 ? "expected channels" : "which leaves nothing"
            throw .unsupported([
                .init(operation: "slice", node: name, reason: "along \(x.axesInWords) axis \(axis), \(reason)")
            ])
        }
        try reserve(count * 4 * MemoryLayout<Int>.stride, for: name)
        return try add(SelectChannels(channels: Array(places)), named: name, to: [x])
    }

    /// The mean over some axes.
    mutating func mean(
        _ x: SourceActivation, over axes: [Int], keepingAxes: Bool, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let places = axes.compactMap(x.place)
        guard places.count == axes.count, Set(places).count == axes.count else {
            throw .malformed(reason: "\(name) has the axes \(axes) of \(x.dimensions), expected each once")
        }
        let long = places.flatMap { place -> [Axis] in
            if case .flat(let parts) = x.axes[place] { return parts }
            return [x.axes[place]]
        }.filter { x.length(of: $0) > 1 }
        var result = x
        if Set(long) == Set([.height, .width].filter { x.length(of: $0) > 1 }), !long.isEmpty {
            result = try add(GlobalAveragePool(), named: name, to: [x])
        } else if !long.isEmpty {
            var over = MeanAxes()
            for axis in long {
                switch axis {
                case .height: over.insert(.height)
                case .width: over.insert(.width)
                case .channels: over.insert(.channels)
                case .batch, .unit, .flat, .part:
                    throw .unsupported([.init(operation: "mean", node: name, reason: "over \(axis)")])
                }
            }
            result = try add(MeanLayer(axes: over), named: name, to: [x])
        }
        for place in places.sorted(by: >) {
            if keepingAxes {
                if case .flat = result.axes[place] { result.axes[place] = .unit }
            } else {
                result.axes.remove(at: place)
            }
        }
        return result
    }

    /// Probabilities along one axis.
    mutating func softmax(
        _ x: SourceActivation, along axis: Int, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        guard let place = x.place(ofAxis: axis) else {
            throw .malformed(reason: "\(name) has an axis \(axis) that \(x.dimensions) has not")
        }
        var input = x
        if x.length(of: x.axes[place]) == x.shape.count {
            input = try vector(x, named: name)
            input.axes = x.axes.map { $0 == .batch ? .batch : .unit }
            input.axes[place] = .channels
        }
        guard let input = input.withChannels(at: place) else {
            throw .unsupported([
                .init(
                    operation: "softmax", node: name,
                    reason: "along axis \(axis) of \(x.axesInWords), expected channels")
            ])
        }
        return try add(Softmax(), named: name, to: [input])
    }
}

extension NetworkAssembler {
    /// A border around pictures.
    /// - Parameter amounts: For each axis, how many numbers come before and after it.
    mutating func pad(
        _ x: SourceActivation, _ amounts: [(axis: Int, before: Int, after: Int)], _ mode: PadLayer.Mode,
        named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        // As a picture if it can be one: an axis of length 1 has then its usual meaning.
        let x = (try? picture(x, for: name)) ?? x
        var sides: [Axis: (before: Int, after: Int)] = [:]
        for (axis, before, after) in amounts where before != 0 || after != 0 {
            guard let place = x.place(ofAxis: axis), x.axes[place] == .height || x.axes[place] == .width else {
                throw .unsupported([
                    .init(
                        operation: "pad", node: name,
                        reason: "axis \(axis) of \(x.axesInWords), expected height and width")
                ])
            }
            sides[x.axes[place]] = (before, after)
        }
        guard !sides.isEmpty else { return x }
        let (rows, columns) = (sides[.height] ?? (0, 0), sides[.width] ?? (0, 0))
        return try add(
            PadLayer(top: rows.before, left: columns.before, bottom: rows.after, right: columns.after, mode: mode),
            named: name, to: [x])
    }

    /// min(max(x, least), greatest), as the layer that is made for it if there is one.
    mutating func clip(
        _ x: SourceActivation, from least: Float, to greatest: Float, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        // The largest numbers that there are stand for no limit.
        let (least, greatest) = (
            least <= -.greatestFiniteMagnitude ? -Float.infinity : least,
            greatest >= .greatestFiniteMagnitude ? Float.infinity : greatest
        )
        switch (least, greatest) {
        case (-.infinity, .infinity): return x
        case (0, .infinity): return try add(ReLU(), named: name, to: [x])
        case (0, 6): return try add(ReLU6(), named: name, to: [x])
        default: return try add(ClipLayer(minimum: least, maximum: greatest), named: name, to: [x])
        }
    }
}

extension Padding {
    /// Whether there is no border at all.
    var isNone: Bool { self == .valid || self == .all(0) }
}
