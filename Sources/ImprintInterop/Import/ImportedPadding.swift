internal import ImprintNetwork

extension Padding {
    /// Whether the padding is zero on all sides.
    var isNone: Bool { self == .valid || self == .all(0) }

    /// Returns the padding for an output of the size ⌈input / stride⌉ whose odd pixel comes first (SAME_LOWER).
    ///
    /// `Padding.same` has the odd pixel at the end. Sides with an invalid kernel, stride or dilation get no padding; the layer reports them.
    static func sameLower(_ kernel: Size2D, _ stride: Size2D, _ dilation: Size2D, over input: TensorShape) -> Padding {
        func amounts(_ length: Int, _ kernel: Int, _ stride: Int, _ dilation: Int) -> (before: Int, after: Int) {
            guard [kernel, stride, dilation].allSatisfy((1...(1 << 15)).contains) else { return (0, 0) }
            let output = (length + stride - 1) / stride
            let total = max((output - 1) * stride + (kernel - 1) * dilation + 1 - length, 0)
            return (total - total / 2, total / 2)
        }
        let rows = amounts(input.height, kernel.height, stride.height, dilation.height)
        let columns = amounts(input.width, kernel.width, stride.width, dilation.width)
        return .explicit(top: rows.before, left: columns.before, bottom: rows.after, right: columns.after)
    }
}
