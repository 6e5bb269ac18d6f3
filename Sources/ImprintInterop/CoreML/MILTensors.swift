internal import ImprintModel
internal import ImprintNetwork

/// The operations for arithmetic, reductions, reshaping and selection.
extension MILImporter {
    mutating func sum(_ operation: Operation) throws -> SourceActivation {
        switch (try tensor("x", operation), try tensor("y", operation)) {
        case (.activation(let x), .activation(let y)): return try assembler.add([x, y], named: operation.name)
        case (.activation(let x), .constant(let y)), (.constant(let y), .activation(let x)):
            return try assembler.add(x, y, named: operation.name)
        case (.constant, .constant): throw unsupported(operation, "of two constants")
        }
    }

    mutating func product(_ operation: Operation) throws -> SourceActivation {
        switch (try tensor("x", operation), try tensor("y", operation)) {
        case (.activation(let x), .activation(let y)): return try assembler.multiply([x, y], named: operation.name)
        case (.activation(let x), .constant(let y)), (.constant(let y), .activation(let x)):
            return try assembler.multiply(x, by: y, named: operation.name)
        case (.constant, .constant): throw unsupported(operation, "of two constants")
        }
    }

    /// Computes the maximum of two tensors, or limits one by a scalar constant.
    mutating func limit(_ operation: Operation, fromBelow: Bool) throws -> SourceActivation {
        switch (try tensor("x", operation), try tensor("y", operation)) {
        case (.activation(let x), .activation(let y)) where fromBelow:
            return try assembler.maximum([x, y], named: operation.name)
        case (.activation(let x), .constant(let y)), (.constant(let y), .activation(let x)):
            guard y.count == 1, let number = y.floats.first else {
                throw unsupported(operation, "by a constant of the shape \(y.shape), expected a scalar")
            }
            return try assembler.clip(
                x, from: fromBelow ? number : -.infinity, to: fromBelow ? .infinity : number, named: operation.name)
        default: throw unsupported(operation, "expected a constant limit")
        }
    }

    mutating func concatenate(_ operation: Operation) throws -> SourceActivation {
        let parts = try tensors("values", operation).map { tensor in
            guard case .activation(let part) = tensor else { throw unsupported(operation, "with constants") }
            return part
        }
        guard try !bool("interleave", operation) else { throw unsupported(operation, "with interleaved inputs") }
        return try assembler.concatenate(parts, along: integer("axis", operation) ?? 0, named: operation.name)
    }

    mutating func split(_ operation: Operation) throws -> [SourceActivation] {
        let (lengths, count) = (try integers("split_sizes", operation), operation.outputs.count)
        return try assembler.split(
            activation("x", operation), along: integer("axis", operation) ?? 0, as: operation.outputs,
            named: operation.name
        ) { lengths ?? Array(repeating: $0 / count, count: count) }
    }

    mutating func slice(_ operation: Operation) throws -> SourceActivation {
        var x = try activation("x", operation)
        let rank = x.axes.count
        func values(_ parameter: String, _ standard: Int) throws -> [Int] {
            let found = try integers(parameter, operation) ?? Array(repeating: standard, count: rank)
            guard found.count == rank else { throw malformed(operation, "has \(found.count) values for \(parameter)") }
            return found
        }
        let (begins, ends, steps) = (try values("begin", 0), try values("end", 0), try values("stride", 1))
        let (toFirst, toLast) = (try values("begin_mask", 0), try values("end_mask", 0))
        let squeezed = try values("squeeze_mask", 0)
        for axis in 0..<rank {
            let (length, step) = (x.dimensions[axis], steps[axis])
            guard step > 0 else { throw unsupported(operation, "with a negative step, expected a positive one") }
            func index(_ number: Int) -> Int { min(max(number < 0 ? number + length : number, 0), length) }
            let first = toFirst[axis] != 0 ? 0 : index(begins[axis])
            var last = toLast[axis] != 0 ? length : index(ends[axis])
            if squeezed[axis] != 0 { last = min(first + 1, length) }
            guard first < last else { throw malformed(operation, "selects nothing of \(x.dimensions)") }
            x = try assembler.select(x, along: axis, stride(from: first, to: last, by: step), named: operation.name)
        }
        x.axes = x.axes.indices.filter { squeezed[$0] == 0 }.map { x.axes[$0] }
        return x
    }

    func transpose(_ operation: Operation) throws -> SourceActivation {
        var x = try activation("x", operation)
        let order = (try integers("perm", operation) ?? []).map { $0 < 0 ? $0 + x.axes.count : $0 }
        guard Set(order) == Set(x.axes.indices), order.count == x.axes.count else {
            throw malformed(operation, "has the permutation \(order) for a tensor \(x.dimensions)")
        }
        let axes = x.axes
        x.axes = order.map { axes[$0] }
        return x
    }

    mutating func reshape(_ operation: Operation) throws -> SourceActivation {
        let x = try activation("x", operation)
        let target = try integers("shape", operation) ?? []
        guard let dimensions = resolved(target, of: x.dimensions) else {
            throw malformed(operation, "reshapes \(x.dimensions) to \(target)")
        }
        let y = try assembler.reshape(x, to: dimensions, named: operation.name)
        return try assembler.mergingChannelParts(of: y, named: operation.name)
    }

    func flatten(_ operation: Operation) throws -> SourceActivation {
        let x = try activation("x", operation)
        let axis = try integer("axis", operation) ?? 1
        return try assembler.flattenToTwoAxes(x, at: axis, named: operation.name)
    }

    func squeeze(_ operation: Operation) throws -> SourceActivation {
        try assembler.squeeze(
            activation("x", operation), axes: integers("axes", operation), named: operation.name)
    }

    func expand(_ operation: Operation) throws -> SourceActivation {
        try assembler.unsqueeze(
            activation("x", operation), axes: integers("axes", operation) ?? [], named: operation.name)
    }

    /// Converts a cast between floating-point types, which has no effect because Imprint computes with 32 bits.
    func cast(_ operation: Operation) throws -> SourceActivation {
        let type = try value("dtype", operation)?.text
        guard ["fp16", "fp32"].contains(type) else {
            throw unsupported(operation, "to \(type ?? "no type"), expected fp16 or fp32")
        }
        return try activation("x", operation)
    }

    mutating func reduce(_ operation: Operation, _ mode: Reduction) throws -> SourceActivation {
        let x = try activation("x", operation)
        return try assembler.reduce(
            x, mode, over: integers("axes", operation) ?? Array(x.axes.indices),
            keepingAxes: bool("keep_dims", operation),
            named: operation.name)
    }
}
