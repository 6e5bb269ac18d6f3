internal import ImprintNetwork

/// Operators that reshape, reorder, select or pad elements.
extension NetworkAssembler {
    /// Returns the activation in NCHW order (batch, channels, height, width), which image layers expect.
    func imageTensor(_ x: SourceActivation, for name: String) throws(ImportError.Problem) -> SourceActivation {
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
                    reason: "expected batch, channels, height and width, found \(x.axisNames) of \(x.dimensions)")
            ])
        }
        var x = x
        x.axes = expected
        return x
    }

    /// Flattens the axes before `axis` into the first axis, and the others into the second.
    func flattenToTwoAxes(
        _ x: SourceActivation, at axis: Int, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let index = axis < 0 ? axis + x.axes.count : axis
        guard (0...x.axes.count).contains(index) else {
            throw .malformed(reason: "\(name) has the axis \(axis) for a tensor \(x.dimensions)")
        }
        let dimensions = x.dimensions
        return try reshape(x, to: [dimensions[..<index].reduce(1, *), dimensions[index...].reduce(1, *)], named: name)
    }

    /// Removes axes of length 1; all of them if `axes` is `nil`.
    func squeeze(
        _ x: SourceActivation, axes: [Int]?, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let axes = axes ?? x.axes.indices.filter { x.dimensions[$0] == 1 }
        let indices = Set(axes.compactMap(x.index))
        guard indices.count == axes.count, indices.allSatisfy({ x.dimensions[$0] == 1 }) else {
            throw .malformed(
                reason: "\(name) removes the axes \(axes) of a tensor \(x.dimensions), expected axes of length 1")
        }
        var x = x
        x.axes = x.axes.indices.filter { !indices.contains($0) }.map { x.axes[$0] }
        return x
    }

    /// Inserts axes of length 1 at these indices of the result.
    func unsqueeze(
        _ x: SourceActivation, axes: [Int], named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let rank = x.axes.count + axes.count
        guard rank <= Self.maximumRank else {
            throw .exceedsLimit(reason: "\(name) has \(rank) axes, expected at most \(Self.maximumRank)")
        }
        let indices = Set(axes.map { $0 < 0 ? $0 &+ rank : $0 })
        guard indices.count == axes.count, indices.allSatisfy({ (0..<rank).contains($0) }) else {
            throw .malformed(
                reason: "\(name) inserts the axes \(axes) into \(x.dimensions), expected valid axes without duplicates")
        }
        var x = x
        for index in indices.sorted() { x.axes.insert(.unit, at: index) }
        return x
    }

    /// Reshapes a tensor, if the reshape only joins, removes or inserts axes, or splits the channels.
    func reshape(
        _ x: SourceActivation, to dimensions: [Int], named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        guard dimensions.count <= Self.maximumRank else {
            throw .exceedsLimit(
                reason: "\(name) has \(dimensions.count) axes, expected at most \(Self.maximumRank)")
        }
        var rest = x.longAxes[...]
        var axes: [Axis] = []
        for (index, length) in dimensions.enumerated() {
            if rest.first == .channels, let lengths = divided(x.shape.channels, among: dimensions[index...]) {
                rest.replaceSubrange(..<(rest.startIndex + 1), with: lengths.indices.map { .part($0, of: lengths) })
            }
            guard length != 1 else {
                // The first axis of length 1 becomes the batch.
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
            throw .malformed(reason: "\(name) reshapes \(x.dimensions) to \(dimensions), which has fewer elements")
        }
        return SourceActivation(node: x.node, shape: x.shape, axes: axes)
    }

    /// Returns the leading lengths greater than 1 whose product is the number of channels.
    ///
    /// - Returns: nil if the reshape does not split the channels.
    private func divided(_ channels: Int, among dimensions: ArraySlice<Int>) -> [Int]? {
        var (lengths, product): ([Int], Int) = ([], 1)
        for length in dimensions where length > 1 && product < channels {
            guard channels % length == 0 else { return nil }
            lengths.append(length)
            product *= length
        }
        return lengths.count > 1 && product == channels ? lengths : nil
    }

    /// Merges the parts of split channels that a reshape has flattened into one axis.
    ///
    /// If the parts are permuted (a channel shuffle), this adds a layer that permutes the channels.
    mutating func mergingChannelParts(
        of x: SourceActivation, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        for (index, axis) in x.axes.enumerated() {
            guard case .flat(let parts) = axis, case .part(_, let lengths) = parts.first else { continue }
            let whole = lengths.indices.map { Axis.part($0, of: lengths) }
            guard parts.count == whole.count, Set(parts) == Set(whole) else { continue }
            var result = x
            result.axes[index] = .channels
            guard parts != whole else { return result }
            try reserve(x.shape.channels * 4 * MemoryLayout<Int>.stride, for: name)
            let order = memoryOrder(of: SourceActivation(node: x.node, shape: x.shape, axes: [axis]))
            return try add(SelectChannels(channels: order), named: name, to: [result])
        }
        return x
    }

    /// Flattens all elements of an image into one axis after the batch.
    func flatten(_ x: SourceActivation) -> SourceActivation {
        let long = x.longAxes
        let axis: Axis = long.count > 1 ? .flat(long) : long.first ?? .channels
        return SourceActivation(node: x.node, shape: x.shape, axes: [.batch, axis])
    }
}

extension NetworkAssembler {
    /// Concatenates tensors along an axis.
    mutating func concatenate(
        _ parts: [SourceActivation], along axis: Int, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        guard let first = parts.first, let index = first.index(ofAxis: axis) else {
            throw .malformed(reason: "\(name) concatenates no tensors, or along an invalid axis \(axis)")
        }
        guard parts.count > 1 else { return first }
        var parts = parts
        for (partIndex, part) in parts.enumerated() where part.axes.indices.contains(index) {
            guard case .flat = part.axes[index], part.isFlat else { continue }
            parts[partIndex] = try vector(part, named: name)
            parts[partIndex].axes = part.axes
            parts[partIndex].axes[index] = .channels
        }
        let channels = parts.compactMap { $0.axes.count == first.axes.count ? $0.withChannels(at: index) : nil }
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

    /// Flattens all elements of an image into channels, in the order of the source's axes.
    mutating func vector(
        _ x: SourceActivation, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        guard !x.isVector else { return SourceActivation(node: x.node, shape: x.shape, axes: [.batch, .channels]) }
        let flat = try add(Flatten(), named: "\(name).flatten", to: [x], axes: [.batch, .channels])
        // The memory for the offsets, and for the runs from which they are built.
        try reserve(x.shape.count * 4 * MemoryLayout<Int>.stride, for: name)
        let order = memoryOrder(of: x)
        if zip(order, order.indices).allSatisfy({ $0 == $1 }) { return flat }
        return try add(SelectChannels(channels: order), named: "\(name).order", to: [flat])
    }

    /// Flattens all elements of an image into channels, split into the axes of `x`.
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

    /// Selects indices along an axis.
    mutating func select(
        _ x: SourceActivation, along axis: Int, _ indices: some Sequence<Int>, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        // Check the indices one by one: a few bytes of a file may describe more indices than memory can hold.
        var (count, isWhole) = (0, true)
        let index = x.index(ofAxis: axis)
        let length = index.map { x.dimensions[$0] } ?? 0
        for selected in indices {
            guard (0..<length).contains(selected) else {
                throw .malformed(reason: "\(name) selects index \(selected) along axis \(axis) of \(x.dimensions)")
            }
            isWhole = isWhole && selected == count
            count += 1
            guard count <= Self.maximumIndexCount else {
                throw .exceedsLimit(
                    reason:
                        "\(name) selects more than \(Self.maximumIndexCount) indices of \(x.dimensions), expected channels"
                )
            }
        }
        guard let index else {
            throw .malformed(reason: "\(name) has the axis \(axis) for a tensor \(x.dimensions)")
        }
        if isWhole && count == length { return x }
        guard count > 0, let x = x.withChannels(at: index) else {
            let reason = count > 0 ? "expected channels" : "selects nothing"
            throw .unsupported([
                .init(operation: "slice", node: name, reason: "along axis \(axis) of \(x.axisNames), \(reason)")
            ])
        }
        try reserve(count * 4 * MemoryLayout<Int>.stride, for: name)
        return try add(SelectChannels(channels: Array(indices)), named: name, to: [x])
    }

    /// Splits a tensor along an axis.
    ///
    /// - Parameters:
    ///   - names: The names of the parts, in their order.
    ///   - lengths: Returns the lengths of the parts for the length of the axis.
    mutating func split(
        _ x: SourceActivation, along axis: Int, as names: [String], named name: String, lengths: (Int) -> [Int]
    ) throws(ImportError.Problem) -> [SourceActivation] {
        guard let index = x.index(ofAxis: axis), !names.isEmpty else {
            throw .malformed(reason: "\(name) splits axis \(axis) of \(x.dimensions) into \(names.count) parts")
        }
        let length = x.dimensions[index]
        let lengths = lengths(length)
        guard lengths.count == names.count, length > 0, lengths.allSatisfy((1...length).contains),
            lengths.reduce(0, +) == length
        else {
            throw .malformed(
                reason:
                    "\(name) splits \(length) elements into \(lengths), expected \(names.count) positive lengths")
        }
        var (parts, start): ([SourceActivation], Int) = ([], 0)
        for (name, length) in zip(names, lengths) {
            parts.append(try select(x, along: axis, start..<(start + length), named: name))
            start += length
        }
        return parts
    }

    /// Computes the mean over some axes.
    mutating func mean(
        _ x: SourceActivation, over axes: [Int], keepingAxes: Bool, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let indices = axes.compactMap(x.index)
        guard indices.count == axes.count, Set(indices).count == axes.count else {
            throw .malformed(
                reason:
                    "\(name) has the axes \(axes) for a tensor \(x.dimensions), expected valid axes without duplicates")
        }
        let long = indices.flatMap { index -> [Axis] in
            if case .flat(let parts) = x.axes[index] { return parts }
            return [x.axes[index]]
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
        for index in indices.sorted(by: >) {
            if keepingAxes {
                if case .flat = result.axes[index] { result.axes[index] = .unit }
            } else {
                result.axes.remove(at: index)
            }
        }
        return result
    }

    /// Computes the softmax along one axis.
    mutating func softmax(
        _ x: SourceActivation, along axis: Int, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        guard let index = x.index(ofAxis: axis) else {
            throw .malformed(reason: "\(name) has the axis \(axis) for a tensor \(x.dimensions)")
        }
        var input = x
        if x.length(of: x.axes[index]) == x.shape.count {
            input = try vector(x, named: name)
            input.axes = x.axes.map { $0 == .batch ? .batch : .unit }
            input.axes[index] = .channels
        }
        guard let input = input.withChannels(at: index) else {
            throw .unsupported([
                .init(
                    operation: "softmax", node: name,
                    reason: "along axis \(axis) of \(x.axisNames), expected channels")
            ])
        }
        return try add(Softmax(), named: name, to: [input])
    }
}

extension NetworkAssembler {
    /// Pads the height and width.
    ///
    /// - Parameter amounts: The number of elements to add before and after each axis.
    mutating func pad(
        _ x: SourceActivation, _ amounts: [(axis: Int, before: Int, after: Int)], _ mode: PadLayer.Mode,
        named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        // If the tensor can be in NCHW order, axes of length 1 get their usual meaning.
        let x = (try? imageTensor(x, for: name)) ?? x
        var sides: [Axis: (before: Int, after: Int)] = [:]
        for (axis, before, after) in amounts where before != 0 || after != 0 {
            guard let index = x.index(ofAxis: axis), x.axes[index] == .height || x.axes[index] == .width else {
                throw .unsupported([
                    .init(
                        operation: "pad", node: name,
                        reason: "axis \(axis) of \(x.axisNames), expected height and width")
                ])
            }
            sides[x.axes[index]] = (before, after)
        }
        guard !sides.isEmpty else { return x }
        let (rows, columns) = (sides[.height] ?? (0, 0), sides[.width] ?? (0, 0))
        return try add(
            PadLayer(top: rows.before, left: columns.before, bottom: rows.after, right: columns.after, mode: mode),
            named: name, to: [x])
    }

    /// Computes min(max(x, minimum), maximum), as a ReLU or ReLU6 if possible.
    mutating func clip(
        _ x: SourceActivation, from minimum: Float, to maximum: Float, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        // The largest finite values mean no limit.
        let (minimum, maximum) = (
            minimum <= -.greatestFiniteMagnitude ? -Float.infinity : minimum,
            maximum >= .greatestFiniteMagnitude ? Float.infinity : maximum
        )
        switch (minimum, maximum) {
        case (-.infinity, .infinity): return x
        case (0, .infinity): return try add(ReLU(), named: name, to: [x])
        case (0, 6): return try add(ReLU6(), named: name, to: [x])
        default: return try add(ClipLayer(minimum: minimum, maximum: maximum), named: name, to: [x])
        }
    }
}
