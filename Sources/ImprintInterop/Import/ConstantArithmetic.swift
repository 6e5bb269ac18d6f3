/// Constant folding: the operations that exporters apply to constants. Each returns nil if the shapes do not match.
extension Constant {
    /// Returns a constant of this shape with the elements at `offsets`.
    private func with(_ shape: [Int], offsets: some Sequence<Int>) -> Constant {
        func picked<Number>(_ values: [Number]) -> [Number] {
            var result: [Number] = []
            result.reserveCapacity(shape.reduce(1, *))
            for offset in offsets { result.append(values[offset]) }
            return result
        }
        return switch values {
        case .floats(let values): Constant(shape: shape, floats: picked(values))
        case .integers(let values): Constant(shape: shape, integers: picked(values))
        }
    }

    func reshaped(to shape: [Int]) -> Constant? {
        guard elementCount(shape) == count else { return nil }
        switch values {
        case .floats(let values): return Constant(shape: shape, floats: values)
        case .integers(let values): return Constant(shape: shape, integers: values)
        }
    }

    /// Returns the constant with permuted axes; reversed axes if `order` is nil.
    func transposed(_ order: [Int]?) -> Constant? {
        let order = order ?? Array(shape.indices.reversed())
        guard Set(order) == Set(shape.indices), order.count == shape.count else { return nil }
        var strides = [Int](repeating: 1, count: shape.count)
        for axis in shape.indices.dropLast().reversed() { strides[axis] = strides[axis + 1] * shape[axis + 1] }
        return with(
            order.map { shape[$0] },
            offsets: StridedOffsets(order.map { shape[$0] }, strides: order.map { strides[$0] }))
    }

    /// Returns the slices at `indices` along an axis; axes of `shape` replace that axis.
    ///
    /// - Parameter limit: The maximum number of elements; the result is `nil` if it would have more.
    func gathered(_ indices: [Int], along axis: Int, shape new: [Int], upTo limit: Int) -> Constant? {
        let axis = axis < 0 ? axis + shape.count : axis
        guard shape.indices.contains(axis) else { return nil }
        let length = shape[axis]
        let indices = indices.map { $0 < 0 ? $0 &+ length : $0 }
        guard indices.allSatisfy({ (0..<length).contains($0) }) else { return nil }
        let (outer, inner) = (shape[..<axis].reduce(1, *), shape[(axis + 1)...].reduce(1, *))
        let shape = Array(shape[..<axis]) + new + shape[(axis + 1)...]
        guard let size = elementCount(shape), size <= limit else { return nil }
        let all = (0..<outer).lazy.flatMap { o in
            indices.lazy.flatMap { index in (0..<inner).lazy.map { (o * length + index) * inner + $0 } }
        }
        return with(shape, offsets: all)
    }

    /// Applies a function to each element.
    func mapped(integer: (Int) -> Int, _ float: (Float) -> Float) -> Constant {
        switch values {
        case .floats(let values): Constant(shape: shape, floats: values.map(float))
        case .integers(let values): Constant(shape: shape, integers: values.map(integer))
        }
    }

    /// Combines two constants element by element, with NumPy broadcasting.
    ///
    /// - Parameter limit: The maximum number of elements; the result is `nil` if it would have more.
    static func combined(
        _ inputs: [Constant], upTo limit: Int, integer: (Int, Int) -> Int, _ float: (Float, Float) -> Float
    ) -> Constant? {
        guard inputs.count == 2, let broadcast = Broadcasting(inputs[0].shape, inputs[1].shape),
            let count = elementCount(broadcast.shape), count <= limit
        else { return nil }
        if case (.integers(let left), .integers(let right)) = (inputs[0].values, inputs[1].values) {
            return Constant(shape: broadcast.shape, integers: broadcast.combine(left, right, integer))
        }
        return Constant(shape: broadcast.shape, floats: broadcast.combine(inputs[0].floats, inputs[1].floats, float))
    }
}

/// Two arrays that are broadcast to one shape as in NumPy.
private struct Broadcasting {
    /// The shape of the result.
    let shape: [Int]
    private let left: [Int]
    private let right: [Int]

    /// Broadcasts two shapes; `nil` if they are not compatible.
    init?(_ left: [Int], _ right: [Int]) {
        let rank = max(left.count, right.count)
        func padded(_ shape: [Int]) -> [Int] { Array(repeating: 1, count: rank - shape.count) + shape }
        (self.left, self.right) = (padded(left), padded(right))
        guard zip(self.left, self.right).allSatisfy({ $0 == $1 || $0 == 1 || $1 == 1 }) else { return nil }
        shape = zip(self.left, self.right).map { $0 == 1 ? $1 : $0 }
    }

    /// Returns the result in row-major order; apart from it, this needs no memory that grows with the arrays.
    func combine<Number>(_ a: [Number], _ b: [Number], _ function: (Number, Number) -> Number) -> [Number] {
        // Along the innermost axes both arrays are contiguous, or one of them is a single element.
        let isSame = zip(left, right).map(==)
        let (one, other) = (left.map { $0 == 1 }, right.map { $0 == 1 })
        let inner = [isSame, one, other].map { $0.reversed().prefix { $0 }.count }.max() ?? 0
        let outer = shape.count - inner
        let run = shape[outer...].reduce(1, *)
        let aStep = left[outer...].allSatisfy { $0 == 1 } ? 0 : 1
        let bStep = right[outer...].allSatisfy { $0 == 1 } ? 0 : 1
        var result: [Number] = []
        result.reserveCapacity(shape.reduce(1, *))
        for (i, j) in zip(starts(left, outer), starts(right, outer)) {
            for index in 0..<run { result.append(function(a[i + index * aStep], b[j + index * bStep])) }
        }
        return result
    }

    /// Returns the offsets of the contiguous runs in an array whose axis lengths equal the result's or 1.
    private func starts(_ lengths: [Int], _ outer: Int) -> StridedOffsets {
        var size = lengths.reduce(1, *)
        let strides = lengths[..<outer].map { length in
            size = length > 0 ? size / length : 0
            return length == 1 ? 0 : size
        }
        return StridedOffsets(Array(shape[..<outer]), strides: strides)
    }
}

extension [Constant] {
    /// Concatenates the constants along an axis.
    ///
    /// - Parameter limit: The maximum number of elements; the result is `nil` if it would have more.
    func joined(along axis: Int, upTo limit: Int) -> Constant? {
        guard let first else { return nil }
        let axis = axis < 0 ? axis + first.shape.count : axis
        guard first.shape.indices.contains(axis) else { return nil }
        var shape = first.shape
        shape[axis] = 0
        for part in self {
            var other = part.shape
            guard other.count == shape.count else { return nil }
            let (length, overflow) = shape[axis].addingReportingOverflow(other[axis])
            (shape[axis], other[axis]) = (length, length)
            guard other == shape, !overflow, let count = elementCount(shape), count <= limit else { return nil }
        }
        let outer = shape[..<axis].reduce(1, *)
        func pieces<Number>(_ values: (Constant) -> [Number]) -> [Number] {
            let parts = map { (values: values($0), length: $0.count / Swift.max(outer, 1)) }
            return (0..<outer).flatMap { row in parts.flatMap { $0.values[(row * $0.length)..<((row + 1) * $0.length)] }
            }
        }
        let integers = compactMap { constant -> [Int]? in
            if case .integers(let values) = constant.values { values } else { nil }
        }
        if integers.count == count { return Constant(shape: shape, integers: pieces { $0.integers ?? [] }) }
        return Constant(shape: shape, floats: pieces(\.floats))
    }
}

/// The offsets of the elements of a strided array, last axis fastest.
struct StridedOffsets: Sequence, IteratorProtocol {
    private let lengths: [Int]
    private let strides: [Int]
    private var indices: [Int]
    private var offset = 0
    private var rest: Int

    init(_ lengths: [Int], strides: [Int]) {
        (self.lengths, self.strides, rest) = (lengths, strides, checkedProduct(lengths) ?? 0)
        indices = lengths.map { _ in 0 }
    }

    mutating func next() -> Int? {
        guard rest > 0 else { return nil }
        rest -= 1
        let current = offset
        for axis in indices.indices.reversed() {
            indices[axis] += 1
            offset += strides[axis]
            if indices[axis] < lengths[axis] { break }
            offset -= lengths[axis] * strides[axis]
            indices[axis] = 0
        }
        return current
    }
}
