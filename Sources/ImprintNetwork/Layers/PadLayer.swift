internal import CImprintKernels

/// Padding of an image with a constant or with its own pixels.
///
/// y[n, i + top, j + left, c] = x[n, i, j, c]; `mode` determines the border.
///
/// Input: [batch, height, width, channels]. Output: [batch, top + height + bottom, left + width + right, channels].
///
/// Backward: the gradient of a pixel is the sum over its copies.
public struct PadLayer: Layer {
    /// The padding mode, which determines the values of the border.
    public enum Mode: Hashable, Sendable {
        /// A finite constant.
        case constant(Float)
        /// The image reflected at its border pixels, which are not repeated: 2 1 | 0 1 2. The border must be smaller than the image.
        case reflect
        /// The border pixels repeated: 0 0 | 0 1 2.
        case edge
    }

    public static let kind = "pad"
    /// The rows above the image.
    public let top: Int
    /// The columns left of the image.
    public let left: Int
    /// The rows below the image.
    public let bottom: Int
    /// The number of columns to the right of the image.
    public let right: Int
    /// The padding mode.
    public let mode: Mode

    /// Creates the layer; all sides must be ≥ 0.
    public init(top: Int, left: Int, bottom: Int, right: Int, mode: Mode) {
        self.top = top
        self.left = left
        self.bottom = bottom
        self.right = right
        self.mode = mode
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let input = try onlyInput("Pad", inputs)
        let limit = 1 << 15
        let sides = [top, left, bottom, right]
        let isValid = sides.allSatisfy { (0...limit).contains($0) }
        try check("Pad", "sides", sides, isValid, "at least 0 and at most \(limit) each")
        switch mode {
        case .constant(let value): try check("Pad", "constant", value, value.isFinite, "a finite number")
        case .reflect:
            let isNarrow = max(top, bottom) < input.height && max(left, right) < input.width
            try check("Pad", "sides", sides, isNarrow, "smaller than the reflected image, \(input)")
        case .edge: break
        }
        return TensorShape(
            height: top + input.height + bottom, width: left + input.width + right, channels: input.channels)
    }

    public var backwardReads: BackwardReads { [] }

    public func forward(_ context: LayerContext, batch: Int) {
        let (from, to) = (context.input.shape, context.output.shape)
        let channels = to.channels
        context.forEachImage(batch) { image in
            let (x, y) = (context.input.at(image), context.output.at(image))
            for row in 0..<to.height {
                let line = y + row * to.width * channels
                guard let source = source(row - top, from.height) else {
                    line.update(repeating: constant, count: to.width * channels)
                    continue
                }
                let origin = x + source * from.width * channels
                (line + left * channels).update(from: origin, count: from.width * channels)
                forEachBorderColumn(to) { column in
                    if let source = self.source(column - left, from.width) {
                        (line + column * channels).update(from: origin + source * channels, count: channels)
                    } else {
                        (line + column * channels).update(repeating: constant, count: channels)
                    }
                }
            }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        let (from, to) = (context.input.shape, context.output.shape)
        let channels = to.channels
        func add(_ dy: UnsafePointer<Float>, to dx: UnsafeMutablePointer<Float>, pixels: Int) {
            imprint_add(dx, dy, dx, pixels * channels)
        }
        context.forEachImage(batch) { image in
            let (dy, dx) = (context.outputGradient + image * to.count, dx + image * from.count)
            dx.update(repeating: 0, count: from.count)
            for row in 0..<to.height {
                guard let source = source(row - top, from.height) else { continue }
                let line = dy + row * to.width * channels
                let origin = dx + source * from.width * channels
                add(line + left * channels, to: origin, pixels: from.width)
                forEachBorderColumn(to) { column in
                    guard let source = self.source(column - left, from.width) else { return }
                    add(line + column * channels, to: origin + source * channels, pixels: 1)
                }
            }
        }
    }

    private var constant: Float { if case .constant(let value) = mode { value } else { 0 } }

    private func forEachBorderColumn(_ output: TensorShape, _ body: (Int) -> Void) {
        for column in 0..<left { body(column) }
        for column in (output.width - right)..<output.width { body(column) }
    }

    /// Returns the row or column of the image that fills `index`, which may lie outside the image; nil for the constant.
    private func source(_ index: Int, _ length: Int) -> Int? {
        if (0..<length).contains(index) { return index }
        switch mode {
        case .constant: return nil
        case .reflect: return index < 0 ? -index : 2 * (length - 1) - index
        case .edge: return min(max(index, 0), length - 1)
        }
    }
}

extension PadLayer.Mode: Codable {
    private struct Constant: Codable {
        let constant: Float
    }

    /// Decodes "reflect", "edge" or `{"constant"}`.
    public init(from decoder: any Decoder) throws {
        guard let word = try? decoder.singleValueContainer().decode(String.self) else {
            self = .constant(try Constant(from: decoder).constant)
            return
        }
        switch word {
        case "reflect": self = .reflect
        case "edge": self = .edge
        default:
            throw NetworkError.invalidProperty(
                layer: "Pad", property: "mode", found: word, expected: "\"reflect\", \"edge\" or a constant")
        }
    }

    /// Encodes "reflect", "edge" or `{"constant"}`.
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        switch self {
        case .constant(let constant): try value.encode(Constant(constant: constant))
        case .reflect: try value.encode("reflect")
        case .edge: try value.encode("edge")
        }
    }
}
