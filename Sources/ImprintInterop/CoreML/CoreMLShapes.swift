internal import ImprintNetwork

/// The layers that reshape or reorder elements.
extension CoreMLGraph {
    typealias Axis = SourceActivation.Axis

    /// Flattens an image into channels, in channels-first or channels-last order.
    mutating func flatten(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let x = try activation(layer)
        return try replacingImageAxes(x, isLast: record.integer(1) == 1, layer) { axes, graph in
            let flat = graph.assembler.flatten(SourceActivation(node: x.node, shape: x.shape, axes: axes)).axes[1]
            return [flat, .unit, .unit]
        }
    }

    /// Reshapes channels, height and width, in channels-first or channels-last order.
    mutating func reshape(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let x = try activation(layer)
        let target = try record.integers(1)
        guard target.count == 3 || (target.count == 4 && target[0] == 1) else {
            throw unsupported(layer, "to \(target), expected channels, height and width")
        }
        let isLast = try record.integer(2) == 1
        let lengths = Array(target.suffix(3))
        return try replacingImageAxes(x, isLast: isLast, layer) { axes, graph in
            let permuted = SourceActivation(node: x.node, shape: x.shape, axes: [.batch] + axes)
            let wanted = [1] + (isLast ? [lengths[1], lengths[2], lengths[0]] : lengths)
            let reshaped = try graph.assembler.reshape(permuted, to: wanted, named: layer.name).axes.suffix(3)
            let first = reshaped.startIndex
            return isLast ? [reshaped[first + 2], reshaped[first], reshaped[first + 1]] : Array(reshaped)
        }
    }

    /// Replaces the axes of channels, height and width.
    ///
    /// - Parameter change: Returns the new axes for the old ones, channels first or last.
    private mutating func replacingImageAxes(
        _ x: SourceActivation, isLast: Bool, _ layer: CoreMLModel.Layer,
        _ change: ([Axis], CoreMLGraph) throws -> [Axis]
    ) throws -> SourceActivation {
        guard x.axes.count >= 3, x.dimensions.dropLast(3).allSatisfy({ $0 == 1 }) else {
            throw unsupported(layer, "of \(x.dimensions), expected one image")
        }
        var result = x
        let tail = Array(x.axes.suffix(3))
        result.axes = try x.axes.dropLast(3) + change(isLast ? [tail[1], tail[2], tail[0]] : tail, self)
        return result
    }

    /// Reshapes a tensor; −1 is the remaining length, and 0 copies the length.
    mutating func reshapeToRank(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let x = try activation(layer)
        let target = try record.integers(1)
        guard let dimensions = resolved(target, of: x.dimensions) else {
            throw malformed(layer, "reshapes \(x.dimensions) to \(target)")
        }
        let y = try assembler.reshape(x, to: dimensions, named: layer.name)
        return try assembler.mergingChannelParts(of: y, named: layer.name)
    }

    mutating func flattenTo2D(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let x = try activation(layer)
        let axis = try record.integer(1)
        return try assembler.flattenToTwoAxes(x, at: axis, named: layer.name)
    }

    func squeeze(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let x = try activation(layer)
        var y = try assembler.squeeze(x, axes: record.bool(2) ? nil : record.integers(1), named: layer.name)
        if y.axes.isEmpty { y.axes = [.channels] }
        return y
    }

    func expand(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        try assembler.unsqueeze(activation(layer), axes: record.integers(1), named: layer.name)
    }

    /// Permutes the axes; the old layer counts sequence, channels, height and width.
    func transpose(
        _ layer: CoreMLModel.Layer, _ record: CoreMLRecord, hasSequence: Bool
    ) throws -> SourceActivation {
        var x = try activation(layer)
        var order = try record.integers(1)
        if hasSequence, x.axes.count == 5, order.count == 4 {
            let axisIndices = [0, 2, 3, 4]
            guard order.allSatisfy(axisIndices.indices.contains) else {
                throw malformed(layer, "has the permutation \(order)")
            }
            order = order.map { axisIndices[$0] }
            order.insert(1, at: 1)
        }
        order = order.map { $0 < 0 ? $0 + x.axes.count : $0 }
        guard Set(order) == Set(x.axes.indices), order.count == x.axes.count else {
            throw malformed(layer, "has the permutation \(order) for a tensor \(x.dimensions)")
        }
        let axes = x.axes
        x.axes = order.map { axes[$0] }
        return x
    }
}

/// The layers that concatenate, split and reduce tensors.
extension CoreMLGraph {
    mutating func concatenate(_ layer: CoreMLModel.Layer, along axis: Int) throws -> SourceActivation {
        let (parts, constants) = try terms(layer)
        guard constants.isEmpty else { throw unsupported(layer, "with constants") }
        return try assembler.concatenate(parts, along: axis, named: layer.name)
    }

    /// Splits a tensor into parts of these lengths, or into `count` equal parts if there are none.
    mutating func split(
        _ layer: CoreMLModel.Layer, along axis: Int, lengths: [Int], count: Int
    ) throws -> [SourceActivation] {
        try assembler.split(activation(layer), along: axis, as: layer.outputs, named: layer.name) { length in
            lengths.isEmpty && count > 0 ? Array(repeating: length / count, count: min(count, 4096)) : lengths
        }
    }

    mutating func slice(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        guard try record.integer(4) == 0 else { throw unsupported(layer, "of height or width, expected channels") }
        let x = try withChannels(activation(layer), layer)
        guard let index = x.index(ofAxis: -3) else { throw malformed(layer, "reads \(x.dimensions)") }
        let length = x.dimensions[index]
        let (start, step) = (try record.integer(1), max(try record.integer(3), 1))
        let end = try record.integer(2)
        let last = end < 0 ? length + end : min(end, length)
        guard (0..<length).contains(start), start < last else {
            throw malformed(layer, "selects \(start) to \(end) of \(length) channels")
        }
        return try assembler.select(x, along: -3, stride(from: start, to: last, by: step), named: layer.name)
    }

    /// Converts the old reduction layer for images.
    mutating func reduce(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let axes = [[-3, -2, -1], [-2, -1], [-3], [-2], [-1]]
        let choice = try record.integer(3)
        let modes: [Int: Reduction] = [0: .sum, 1: .mean, 7: .maximum]
        guard let mode = modes[try record.integer(1)], axes.indices.contains(choice) else {
            throw unsupported(layer, "with the mode \(try record.integer(1)), expected sum, mean or maximum")
        }
        return try assembler.reduce(
            activation(layer), mode, over: axes[choice], keepingAxes: true, named: layer.name)
    }

    mutating func reduce(
        _ layer: CoreMLModel.Layer, _ record: CoreMLRecord, _ mode: Reduction
    ) throws -> SourceActivation {
        let x = try activation(layer)
        let axes = try record.bool(3) ? Array(x.axes.indices) : record.integers(1)
        return try assembler.reduce(x, mode, over: axes, keepingAxes: record.bool(2), named: layer.name)
    }
}

/// A reduction over axes.
enum Reduction {
    case sum, mean, maximum
}

extension NetworkAssembler {
    /// Computes the sum, mean or maximum over some axes.
    mutating func reduce(
        _ x: SourceActivation, _ mode: Reduction, over axes: [Int], keepingAxes: Bool, named name: String
    ) throws -> SourceActivation {
        guard mode == .maximum else {
            let y = try mean(x, over: axes, keepingAxes: keepingAxes, named: name)
            let count = x.shape.count / max(y.shape.count, 1)
            return mode == .mean ? y : try linear(y, Float(count), 0, named: "\(name).sum")
        }
        let indices = Set(axes.compactMap(x.index))
        guard indices.count == axes.count else {
            throw ImportError.Problem.malformed(reason: "\(name) has invalid axes for a tensor \(x.dimensions)")
        }
        let long = Set(indices.map { x.axes[$0] }.filter { x.length(of: $0) > 1 })
        var y = x
        if !long.isEmpty {
            guard long == Set([.height, .width].filter { x.length(of: $0) > 1 }) else {
                throw ImportError.Problem.unsupported([
                    .init(operation: "maximum", node: name, reason: "over \(x.axisNames), expected height and width")
                ])
            }
            y = try add(GlobalMaxPool(), named: name, to: [x])
        }
        if !keepingAxes { y.axes = y.axes.indices.filter { !indices.contains($0) }.map { y.axes[$0] } }
        return y
    }
}
