internal import CImprintKernels

/// The height and width of a kernel, stride or dilation; the literal `3` means 3x3.
public struct Size2D: Hashable, Codable, Sendable, ExpressibleByIntegerLiteral, CustomStringConvertible {
    /// The number of rows.
    public var height: Int
    /// The number of columns.
    public var width: Int

    /// Creates a size of `height` rows and `width` columns.
    public init(height: Int, width: Int) {
        self.height = height
        self.width = width
    }

    /// Creates a square size.
    public init(integerLiteral side: Int) { self.init(height: side, width: side) }

    /// Creates a square size.
    public init(_ side: Int) { self.init(height: side, width: side) }

    /// The size as "3x5", height first.
    public var description: String { "\(height)x\(width)" }
}

/// The padding around an image for a convolution or pooling.
public enum Padding: Hashable, Sendable {
    /// No padding: windows lie inside the image.
    case valid
    /// Padding for an output length of ⌈input length / stride⌉; an odd total adds one more pixel at the bottom or right (TensorFlow's rule).
    case same
    /// The given number of pixels on each side.
    case explicit(top: Int, left: Int, bottom: Int, right: Int)

    /// Returns padding with the same number of pixels on all four sides.
    public static func all(_ pixels: Int) -> Padding {
        .explicit(top: pixels, left: pixels, bottom: pixels, right: pixels)
    }
}

extension Padding: Codable {
    private struct Sides: Codable {
        let top, left, bottom, right: Int
    }

    /// Decodes "valid", "same" or `{"top", "left", "bottom", "right"}`.
    public init(from decoder: any Decoder) throws {
        guard let word = try? decoder.singleValueContainer().decode(String.self) else {
            let sides = try Sides(from: decoder)
            self = .explicit(top: sides.top, left: sides.left, bottom: sides.bottom, right: sides.right)
            return
        }
        switch word {
        case "valid": self = .valid
        case "same": self = .same
        default:
            throw NetworkError.invalidProperty(
                layer: "window", property: "padding", found: word, expected: "\"valid\", \"same\" or four sides")
        }
    }

    /// Encodes "valid", "same" or `{"top", "left", "bottom", "right"}`.
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        switch self {
        case .valid: try value.encode("valid")
        case .same: try value.encode("same")
        case .explicit(let top, let left, let bottom, let right):
            try value.encode(Sides(top: top, left: left, bottom: bottom, right: right))
        }
    }
}

/// A sliding window over an image, as convolution and pooling use.
///
/// Along an axis, with effective kernel length e = (kernel − 1) · dilation + 1, output = ⌊(input + padding − e) / stride⌋ + 1. If
/// `roundsUp`, the division is rounded up, which adds a partial window unless it begins beyond the image (Caffe's and PyTorch's rule).
struct Window {
    let kernel: Size2D
    let stride: Size2D
    let dilation: Size2D
    let padding: Padding
    var roundsUp = false

    /// The padding and output length along one axis.
    struct Axis {
        let before: Int
        let after: Int
        let output: Int
    }

    /// Returns the vertical and horizontal axis over `input`.
    /// - Throws: `NetworkError` if a property is out of range or the window does not fit.
    func axes(_ layer: String, over input: TensorShape) throws(NetworkError) -> (vertical: Axis, horizontal: Axis) {
        try checkProperties(layer)
        let vertical = vertical(input.height)
        let horizontal = horizontal(input.width)
        guard vertical.output >= 1 && horizontal.output >= 1 else {
            throw .inputShape(layer: layer, found: [input], reason: "the kernel (\(kernel)) is larger than the image")
        }
        return (vertical, horizontal)
    }

    /// Checks that every property is in range.
    func checkProperties(_ layer: String) throws(NetworkError) {
        let limit = 1 << 15
        for (name, size) in [("kernelSize", kernel), ("stride", stride), ("dilation", dilation)] {
            let isValid = (1...limit).contains(size.height) && (1...limit).contains(size.width)
            try check(layer, name, size, isValid, "at least 1x1 and at most \(limit)x\(limit)")
        }
        if case .explicit(let top, let left, let bottom, let right) = padding {
            let isValid = [top, left, bottom, right].allSatisfy { (0...limit).contains($0) }
            try check(
                layer, "padding", [top, left, bottom, right], isValid, "at least 0 and at most \(limit) per side")
        }
    }

    private func vertical(_ length: Int) -> Axis {
        switch padding {
        case .explicit(let top, _, let bottom, _):
            axis(length, kernel.height, stride.height, dilation.height, (top, bottom))
        case .valid: axis(length, kernel.height, stride.height, dilation.height, (0, 0))
        case .same: axis(length, kernel.height, stride.height, dilation.height, nil)
        }
    }

    private func horizontal(_ length: Int) -> Axis {
        switch padding {
        case .explicit(_, let left, _, let right):
            axis(length, kernel.width, stride.width, dilation.width, (left, right))
        case .valid: axis(length, kernel.width, stride.width, dilation.width, (0, 0))
        case .same: axis(length, kernel.width, stride.width, dilation.width, nil)
        }
    }

    private func axis(
        _ length: Int, _ kernel: Int, _ stride: Int, _ dilation: Int, _ padding: (before: Int, after: Int)?
    ) -> Axis {
        let effective = (kernel - 1) * dilation + 1
        guard let padding else {
            let output = (length + stride - 1) / stride
            let total = max((output - 1) * stride + effective - length, 0)
            return Axis(before: total / 2, after: total - total / 2, output: output)
        }
        let room = length + padding.before + padding.after - effective + (roundsUp ? stride - 1 : 0)
        var output = room < 0 ? 0 : room / stride + 1
        if roundsUp && (output - 1) * stride >= length + padding.before { output -= 1 }
        return Axis(before: padding.before, after: padding.after, output: output)
    }

    /// Returns the output shape over `input`, with `channels` channels.
    func outputShape(_ layer: String, over input: TensorShape, channels: Int) throws(NetworkError) -> TensorShape {
        let axes = try axes(layer, over: input)
        return TensorShape(height: axes.vertical.output, width: axes.horizontal.output, channels: channels)
    }

    /// Returns the window over `input` for the C kernels; `outputShape` must have checked the shapes.
    func kernelWindow(over input: TensorShape) -> imprint_window {
        let vertical = vertical(input.height)
        let horizontal = horizontal(input.width)
        return imprint_window(
            height: Int32(input.height), width: Int32(input.width), channels: Int32(input.channels),
            output_height: Int32(vertical.output), output_width: Int32(horizontal.output),
            kernel_height: Int32(kernel.height), kernel_width: Int32(kernel.width),
            stride_height: Int32(stride.height), stride_width: Int32(stride.width),
            dilation_height: Int32(dilation.height), dilation_width: Int32(dilation.width),
            padding_top: Int32(vertical.before), padding_left: Int32(horizontal.before),
            padding_bottom: Int32(vertical.after), padding_right: Int32(horizontal.after))
    }
}
