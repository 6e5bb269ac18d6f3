internal import Foundation
internal import ImprintModel
internal import ImprintNetwork

/// Constant folding: operators that are computed during the import if their inputs are constant, such as shape arithmetic.
extension ONNXImporter {
    /// The maximum number of elements of a folded constant, unless an input is larger.
    ///
    /// It exceeds the size of any shape, and prevents a few bytes of a file from exhausting memory.
    private static let maximumCount = 1 << 16

    /// Returns the folded constant; nil if the operator cannot be folded, or an input is not constant.
    func computed(_ node: ONNXModel.Node) throws -> Constant? {
        if node.operation == "Shape" { return try shape(node) }
        guard Self.computable.contains(node.operation) else { return nil }
        var inputs: [Constant] = []
        for index in node.inputs.indices where hasInput(index, node) {
            guard case .constant(let constant) = try input(index, node) else { return nil }
            inputs.append(constant)
        }
        let limit = inputs.reduce(Self.maximumCount) { max($0, $1.count) }
        guard let result = try compute(node, inputs, limit), let count = elementCount(result.shape), count <= limit,
            result.shape.count <= NetworkAssembler.maximumRank
        else {
            throw unsupported(node, "inputs of \(inputs.map(\.shape))")
        }
        return result
    }

    static let computable: Set = [
        "Shape", "Constant", "Identity", "ConstantOfShape", "Cast", "Gather", "Concat", "Slice", "Squeeze", "Unsqueeze",
        "Reshape",
        "Transpose", "Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "Neg", "Abs", "Floor", "Ceil", "Sqrt", "Exp",
        "Reciprocal",
    ]

    /// - Parameter limit: The maximum number of elements of the result.
    private func compute(_ node: ONNXModel.Node, _ inputs: [Constant], _ limit: Int) throws -> Constant? {
        switch node.operation {
        case "Constant": return try constantValue(node)
        case "Identity": return inputs.first
        case "ConstantOfShape": return try filled(node, inputs.first?.integers)
        case "Cast": return cast(node, inputs.first)
        case "Gather": return gathered(node, inputs, limit)
        case "Concat": return inputs.joined(along: node.attributes["axis"]?.integer ?? 0, upTo: limit)
        case "Slice": return try sliced(node, inputs.first, limit)
        case "Squeeze", "Unsqueeze", "Reshape":
            return try inputs.first?.reshaped(to: dimensions(of: node, inputs.first?.shape ?? []))
        case "Transpose": return inputs.first?.transposed(node.attributes["perm"]?.integers)
        case "Add": return Constant.combined(inputs, upTo: limit, integer: &+, +)
        case "Sub": return Constant.combined(inputs, upTo: limit, integer: &-, -)
        case "Mul": return Constant.combined(inputs, upTo: limit, integer: &*, *)
        case "Div":
            return Constant.combined(inputs, upTo: limit, integer: { $1 == 0 || $1 == -1 ? 0 &- $0 : $0 / $1 }, /)
        case "Min": return Constant.combined(inputs, upTo: limit, integer: min, min)
        case "Max": return Constant.combined(inputs, upTo: limit, integer: max, max)
        case "Pow":
            let floats = inputs.map { Constant(shape: $0.shape, floats: $0.floats) }
            return Constant.combined(floats, upTo: limit, integer: { base, _ in base }, pow)
        case "Abs": return inputs.first?.mapped(integer: { $0 == .min ? $0 : abs($0) }, abs)
        case "Exp": return inputs.first?.mapped(integer: { $0 }, exp)
        case "Reciprocal": return inputs.first?.mapped(integer: { $0 }) { 1 / $0 }
        case "Neg": return inputs.first?.mapped(integer: { 0 &- $0 }, -)
        case "Floor": return inputs.first?.mapped(integer: { $0 }) { $0.rounded(.down) }
        case "Ceil": return inputs.first?.mapped(integer: { $0 }) { $0.rounded(.up) }
        case "Sqrt": return inputs.first?.mapped(integer: { $0 }) { $0.squareRoot() }
        default: return nil
        }
    }

    /// Returns the output of Shape, which is constant even for an activation; the batch has one image.
    private func shape(_ node: ONNXModel.Node) throws -> Constant {
        let all =
            switch try input(0, node) {
            case .constant(let constant): constant.shape
            case .activation(let activation): activation.dimensions
            }
        func index(_ name: String, default value: Int) -> Int {
            let given = node.attributes[name]?.integer ?? value
            return min(max(given < 0 ? given + all.count : given, 0), all.count)
        }
        let (start, end) = (index("start", default: 0), index("end", default: all.count))
        let part = start < end ? Array(all[start..<end]) : []
        return Constant(shape: [part.count], integers: part)
    }

    private func constantValue(_ node: ONNXModel.Node) throws -> Constant? {
        let attributes = node.attributes
        if let float = attributes["value_float"]?.float { return Constant(shape: [], floats: [float]) }
        if let integer = attributes["value_int"]?.integer { return Constant(shape: [], integers: [integer]) }
        if let floats = attributes["value_floats"]?.floats { return Constant(shape: [floats.count], floats: floats) }
        if let integers = attributes["value_ints"]?.integers {
            return Constant(shape: [integers.count], integers: integers)
        }
        return nil
    }

    private func filled(_ node: ONNXModel.Node, _ shape: [Int]?) throws -> Constant? {
        guard let shape, let count = elementCount(shape), count <= Self.maximumCount else { return nil }
        guard let value = try node.attributes["value"]?.tensor?.constant() else {
            return Constant(shape: shape, floats: Array(repeating: 0, count: count))
        }
        switch value.values {
        case .floats(let values):
            return values.first.map { Constant(shape: shape, floats: Array(repeating: $0, count: count)) }
        case .integers(let values):
            return values.first.map { Constant(shape: shape, integers: Array(repeating: $0, count: count)) }
        }
    }

    private func cast(_ node: ONNXModel.Node, _ constant: Constant?) -> Constant? {
        guard let constant, let type = node.attributes["to"]?.integer else { return nil }
        switch type {
        case 1, 10, 11, 16: return Constant(shape: constant.shape, floats: constant.floats)
        case 9: return Constant(shape: constant.shape, integers: constant.floats.map { $0 == 0 ? 0 : 1 })
        default:
            guard case .floats(let values) = constant.values else { return constant }
            return Constant(shape: constant.shape, integers: values.map { Int(exactly: $0.rounded(.towardZero)) ?? 0 })
        }
    }

    private func gathered(_ node: ONNXModel.Node, _ inputs: [Constant], _ limit: Int) -> Constant? {
        guard inputs.count == 2, let indices = inputs[1].integers else { return nil }
        let axis = node.attributes["axis"]?.integer ?? 0
        return inputs[0].gathered(indices, along: axis, shape: inputs[1].shape, upTo: limit)
    }

    private func sliced(_ node: ONNXModel.Node, _ constant: Constant?, _ limit: Int) throws -> Constant? {
        guard var result = constant else { return nil }
        for part in try slices(node, of: result.shape) {
            let indices = Array(part.indices)
            guard let next = result.gathered(indices, along: part.axis, shape: [indices.count], upTo: limit) else {
                return nil
            }
            result = next
        }
        return result
    }
}

extension ONNXImporter {
    /// Returns the indices along each axis that Slice selects; its bounds are attributes up to opset 9.
    func slices(_ node: ONNXModel.Node, of dimensions: [Int]) throws -> [(axis: Int, indices: StrideTo<Int>)] {
        guard let starts = try integers("starts", orInput: 1, node), let ends = try integers("ends", orInput: 2, node)
        else {
            throw ImportError.Problem.malformed(reason: "\(node.name) (Slice) lacks starts or ends")
        }
        let axes = try integers("axes", orInput: 3, node) ?? Array(starts.indices)
        let steps = try constant(4, node)?.integers ?? starts.map { _ in 1 }
        guard axes.count == starts.count, ends.count == starts.count, steps.count == starts.count else {
            throw ImportError.Problem.malformed(
                reason: "\(node.name) (Slice) has starts, ends, axes and steps of different lengths")
        }
        return try axes.indices.map { index in
            let axis = axes[index] < 0 ? axes[index] + dimensions.count : axes[index]
            guard dimensions.indices.contains(axis), steps[index] != 0, steps[index].magnitude < 1 << 32 else {
                throw ImportError.Problem.malformed(reason: "\(node.name) (Slice) has an invalid axis or step")
            }
            let (length, step) = (dimensions[axis], steps[index])
            func limited(_ value: Int, _ range: ClosedRange<Int>) -> Int {
                min(max(value < 0 ? value &+ length : value, range.lowerBound), range.upperBound)
            }
            let indices =
                step > 0
                ? stride(from: limited(starts[index], 0...length), to: limited(ends[index], 0...length), by: step)
                : stride(
                    from: limited(starts[index], 0...max(length - 1, 0)),
                    // Exporters express the end before the first element as a very small number.
                    to: ends[index] < -length ? -1 : limited(ends[index], 0...max(length - 1, 0)), by: step)
            return (axis, indices)
        }
    }

    /// Returns the output shape of Reshape, Squeeze, Unsqueeze or Flatten.
    func dimensions(of node: ONNXModel.Node, _ old: [Int]) throws -> [Int] {
        func indices(_ axes: [Int], of count: Int) throws -> Set<Int> {
            let indices = Set(axes.map { $0 < 0 ? $0 &+ count : $0 })
            guard indices.count == axes.count, indices.allSatisfy({ (0..<count).contains($0) }) else {
                throw ImportError.Problem.malformed(
                    reason: "\(node.name) (\(node.operation)) has the axes \(axes) for a tensor \(old)")
            }
            return indices
        }
        switch node.operation {
        case "Squeeze":
            guard let axes = try integers("axes", orInput: 1, node) else { return old.filter { $0 != 1 } }
            let gone = try indices(axes, of: old.count)
            return old.indices.filter { !gone.contains($0) }.map { old[$0] }
        case "Unsqueeze":
            let axes = try integers("axes", orInput: 1, node) ?? []
            let count = old.count + axes.count
            let new = try indices(axes, of: count)
            var rest = old[...]
            return (0..<count).map { new.contains($0) ? 1 : rest.removeFirst() }
        case "Flatten":
            let axis = node.attributes["axis"]?.integer ?? 1
            let index = axis < 0 ? axis + old.count : axis
            guard (0...old.count).contains(index) else {
                throw ImportError.Problem.malformed(
                    reason: "\(node.name) (Flatten) has the axis \(axis) for a tensor \(old)")
            }
            return [old[..<index].reduce(1, *), old[index...].reduce(1, *)]
        default:
            guard var new = try integers("shape", orInput: 1, node) else {
                throw ImportError.Problem.malformed(reason: "\(node.name) (Reshape) has no shape")
            }
            let copiesZero = (node.attributes["allowzero"]?.integer ?? 0) == 0
            for index in new.indices where new[index] == 0 && copiesZero {
                guard old.indices.contains(index) else {
                    throw ImportError.Problem.malformed(
                        reason: "\(node.name) (Reshape) copies an axis that the tensor \(old) does not have")
                }
                new[index] = old[index]
            }
            let known = checkedProduct(new.filter { $0 != -1 })
            guard let known, let all = checkedProduct(old), new.allSatisfy({ $0 >= -1 }),
                new.count(where: { $0 == -1 }) <= 1
            else {
                throw ImportError.Problem.malformed(reason: "\(node.name) (Reshape) gives \(old) the shape \(new)")
            }
            if let open = new.firstIndex(of: -1), known > 0 { new[open] = all / known }
            guard checkedProduct(new) == all else {
                throw ImportError.Problem.malformed(reason: "\(node.name) (Reshape) gives \(old) the shape \(new)")
            }
            return new
        }
    }
}
