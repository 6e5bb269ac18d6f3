internal import ImprintNetwork

/// A tensor of a model that is being imported.
enum SourceTensor {
    /// A constant: weights, or shapes that the graph computes.
    case constant(Constant)
    /// A tensor that depends on the image.
    case activation(SourceActivation)
}

/// A constant tensor in row-major order.
struct Constant {
    /// The lengths of the axes, slowest first.
    let shape: [Int]
    /// The elements.
    let values: Values

    enum Values {
        case floats([Float])
        case integers([Int])
    }

    init(shape: [Int], floats: [Float]) {
        self.shape = shape
        values = .floats(floats)
    }

    init(shape: [Int], integers: [Int]) {
        self.shape = shape
        values = .integers(integers)
    }

    /// The size of the elements in memory.
    var byteCount: Int {
        switch values {
        case .floats(let values): values.count * MemoryLayout<Float>.stride
        case .integers(let values): values.count * MemoryLayout<Int>.stride
        }
    }

    var count: Int {
        switch values {
        case .floats(let values): values.count
        case .integers(let values): values.count
        }
    }

    /// The elements as floating-point values.
    var floats: [Float] {
        switch values {
        case .floats(let values): values
        case .integers(let values): values.map(Float.init)
        }
    }

    /// The elements as integers; nil if an element is not an integer.
    var integers: [Int]? {
        switch values {
        case .integers(let values): return values
        case .floats(let values):
            let integers = values.compactMap { Int(exactly: $0) }
            return integers.count == values.count ? integers : nil
        }
    }
}

/// The output of a network node as the source format sees it: with a batch axis, and with axes in another order.
///
/// The network's memory layout is height, width, channels (channels fastest). Transposing, squeezing and flattening only change
/// this description, until a layer needs the elements in a different order.
struct SourceActivation: Hashable {
    /// The node that computes it; `Network.inputName` for the image.
    let node: String
    /// The shape of its output.
    let shape: TensorShape
    /// The meaning of each axis of the source's tensor, slowest first.
    var axes: [Axis]

    enum Axis: Hashable, CustomStringConvertible {
        /// The batch axis, of length 1.
        case batch
        case height, width, channels
        /// An axis of length 1 without a meaning.
        case unit
        /// Several axes flattened into one, slowest first.
        case flat([Axis])
        /// One of the axes that a reshape splits the channels into; `lengths` has the slowest first.
        case part(Int, of: [Int])

        /// The name in messages.
        var description: String {
            switch self {
            case .batch: "batch"
            case .height: "height"
            case .width: "width"
            case .channels: "channels"
            case .unit: "1"
            case .flat(let parts): parts.map(\.description).joined(separator: " x ")
            case .part(let index, let lengths): "part \(index + 1) of \(lengths.count) of the channels"
            }
        }
    }

    /// The lengths of the axes, slowest first.
    var dimensions: [Int] { axes.map { length(of: $0) } }

    /// Returns the length of an axis.
    func length(of axis: Axis) -> Int {
        switch axis {
        case .batch, .unit: 1
        case .height: shape.height
        case .width: shape.width
        case .channels: shape.channels
        case .flat(let parts): parts.reduce(1) { $0 * length(of: $1) }
        case .part(let index, let lengths): lengths[index]
        }
    }

    /// The axes longer than 1, slowest first.
    var longAxes: [Axis] {
        axes.flatMap { axis in
            if case .flat(let parts) = axis { parts } else { [axis] }
        }.filter { length(of: $0) > 1 }
    }

    /// Whether one axis contains all values.
    var isFlat: Bool { shape.count == 1 || axes.contains { length(of: $0) == shape.count } }

    /// The axes' names, for messages.
    var axisNames: String { axes.map { "\($0)" }.joined(separator: ", ") }

    /// Whether an image is one vector: only channels are longer than 1, and they are in order.
    var isVector: Bool { shape.pixels == 1 && longAxes.allSatisfy { $0 == .channels } }

    /// Returns the activation with leading axes of length 1, up to `rank` axes in total.
    func padded(toRank rank: Int) -> SourceActivation {
        var result = self
        result.axes.insert(contentsOf: Array(repeating: .unit, count: max(0, rank - axes.count)), at: 0)
        return result
    }

    /// Returns the activation with the axis at `index` as the channels; `nil` if that axis contains other values.
    ///
    /// If the network has one channel, any axis of length 1 can be the channel axis.
    func withChannels(at index: Int) -> SourceActivation? {
        guard axes[index] == .channels || (length(of: axes[index]) == 1 && shape.channels == 1) else { return nil }
        var result = self
        result.axes = axes.map { $0 == .channels ? .unit : $0 }
        result.axes[index] = .channels
        return result
    }

    /// Returns the index of an axis that is counted from the end if negative; nil if it is out of range.
    func index(ofAxis axis: Int) -> Int? {
        let index = axis < 0 ? axis + axes.count : axis
        return axes.indices.contains(index) ? index : nil
    }
}
