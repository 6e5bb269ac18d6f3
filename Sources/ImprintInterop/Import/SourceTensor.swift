internal import ImprintNetwork

/// A tensor of a model that is being imported.
enum SourceTensor {
    /// Known numbers: weights, and shapes that the model computes.
    case constant(Constant)
    /// What the network computes of an image.
    case activation(SourceActivation)
}

/// Known numbers, in row-major order.
struct Constant {
    /// The lengths of the axes, the slowest first.
    let shape: [Int]
    /// The numbers.
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

    /// The memory that the numbers take.
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

    /// The numbers as floating-point ones.
    var floats: [Float] {
        switch values {
        case .floats(let values): values
        case .integers(let values): values.map(Float.init)
        }
    }

    /// The numbers as whole ones; nil if one is none.
    var integers: [Int]? {
        switch values {
        case .integers(let values): return values
        case .floats(let values):
            let whole = values.compactMap { Int(exactly: $0) }
            return whole.count == values.count ? whole : nil
        }
    }
}

/// What the node of a network computes of an image, as the source's formats see it: with a batch, and axes in another order.
///
/// The network's own order is height, width, channels, channels fastest. Moving axes, dropping those of length 1 and flattening change nothing but
/// this description, until a layer needs the numbers in an order of its own.
struct SourceActivation: Hashable {
    /// The node that computes it; `Network.inputName` for the image.
    let node: String
    /// The shape of its result.
    let shape: TensorShape
    /// What each axis of the source's tensor is, the slowest first.
    var axes: [Axis]

    enum Axis: Hashable, CustomStringConvertible {
        /// The image's place in a batch, of which the source sees one.
        case batch
        case height, width, channels
        /// An axis of length 1 that stands for nothing.
        case unit
        /// All numbers of an image in one axis, in the order of these, the slowest first.
        case flat([Axis])
        /// One of the axes that the channels are divided into, as groups of so many are; the slowest of `lengths` first.
        case part(Int, of: [Int])

        /// A word for messages.
        var description: String {
            switch self {
            case .batch: "batch"
            case .height: "height"
            case .width: "width"
            case .channels: "channels"
            case .unit: "1"
            case .flat(let parts): parts.map(\.description).joined(separator: " x ")
            case .part(let place, let lengths): "part \(place + 1) of \(lengths.count) of the channels"
            }
        }
    }

    /// The lengths of the axes, the slowest first.
    var dimensions: [Int] { axes.map { length(of: $0) } }

    /// How many numbers an axis has.
    func length(of axis: Axis) -> Int {
        switch axis {
        case .batch, .unit: 1
        case .height: shape.height
        case .width: shape.width
        case .channels: shape.channels
        case .flat(let parts): parts.reduce(1) { $0 * length(of: $1) }
        case .part(let place, let lengths): lengths[place]
        }
    }

    /// The axes that have more than one number, the slowest first.
    var longAxes: [Axis] {
        axes.flatMap { axis in
            if case .flat(let parts) = axis { parts } else { [axis] }
        }.filter { length(of: $0) > 1 }
    }

    /// Whether all values lie along one axis.
    var isFlat: Bool { shape.count == 1 || axes.contains { length(of: $0) == shape.count } }

    /// The axes' names, for messages.
    var axesInWords: String { axes.map { "\($0)" }.joined(separator: ", ") }

    /// Whether an image is one vector: channels alone are more than 1, and in their own order.
    var isVector: Bool { shape.pixels == 1 && longAxes.allSatisfy { $0 == .channels } }

    /// The same with axes of length 1 in front, up to `rank` axes in all.
    func padded(toRank rank: Int) -> SourceActivation {
        var result = self
        result.axes.insert(contentsOf: Array(repeating: .unit, count: max(0, rank - axes.count)), at: 0)
        return result
    }

    /// The same with the axis at `index` as the channels; `nil` if other values than the channels lie along it.
    ///
    /// Axes of length 1 carry no information: if the network has one channel, any of them can be the axis of the channels.
    func withChannels(at index: Int) -> SourceActivation? {
        guard axes[index] == .channels || (length(of: axes[index]) == 1 && shape.channels == 1) else { return nil }
        var result = self
        result.axes = axes.map { $0 == .channels ? .unit : $0 }
        result.axes[index] = .channels
        return result
    }

    /// The place of an axis that the source counts from the front, or from the end where negative; nil if there is none.
    func place(ofAxis axis: Int) -> Int? {
        let place = axis < 0 ? axis + axes.count : axis
        return axes.indices.contains(place) ? place : nil
    }
}
