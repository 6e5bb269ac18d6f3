internal import CImprintKernels

/// Selection of channels, which drops, reorders or repeats them.
///
/// y[n, i, j, k] = x[n, i, j, `channels`[k]]
///
/// Input: [batch, height, width, channels]. Output: [batch, height, width, `channels.count`].
///
/// Backward: the gradient of a channel is the sum over its copies, in order; 0 without copies.
public struct SelectChannels: Layer {
    public static let kind = "selectChannels"

    /// A run of consecutive channels.
    fileprivate struct Run: Hashable, Sendable {
        let from: Int
        let count: Int
    }

    /// Maximal runs, a unique representation of each list.
    ///
    /// Lists from files stay in this form, because a few characters may describe billions of channels.
    private let runs: [Run]

    /// The input channel of each output channel.
    public var channels: [Int] { runs.flatMap { $0.from...($0.from + ($0.count - 1)) } }

    /// Creates the layer from channel indices (from 0) in any order.
    public init(channels: [Int]) { self.init(runs: channels.map { Run(from: $0, count: 1) }) }

    private init(runs: [Run]) {
        var joined: [Run] = []
        for run in runs {
            if let last = joined.last, last.count >= 1, run.count >= 1,
                case let (end, overflow) = last.from.addingReportingOverflow(last.count), !overflow, end == run.from,
                case let (count, overflow) = last.count.addingReportingOverflow(run.count), !overflow
            {
                joined[joined.count - 1] = Run(from: last.from, count: count)
            } else {
                joined.append(run)
            }
        }
        self.runs = joined
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let input = try onlyInput("SelectChannels", inputs)
        try check("SelectChannels", "channels", "[]", !runs.isEmpty, "at least one channel")
        let limit = Int(Int32.max)
        var count = 0
        for run in runs {
            let isInside =
                run.count >= 1 && run.count <= input.channels && run.from >= 0
                && run.from <= input.channels - run.count
            try check(
                "SelectChannels", "channels", "\(run.count) from index \(run.from)", isInside,
                "channels of the input, 0 … \(input.channels - 1)")
            count += run.count
            try check("SelectChannels", "channels", count, count <= limit, "at most \(limit) in all")
        }
        return TensorShape(height: input.height, width: input.width, channels: count)
    }

    public var backwardReads: BackwardReads { [] }

    public func forward(_ context: LayerContext, batch: Int) {
        let (from, to) = (context.input.shape.channels, context.output.shape.channels)
        forEachBlock(context, batch) { pixel, pixels in
            let x = context.input.values + pixel * from
            var y = context.output.values + pixel * to
            for run in runs {
                imprint_copy_columns(x + run.from, from, y, to, pixels, run.count)
                y += run.count
            }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        let (from, to) = (context.input.shape.channels, context.output.shape.channels)
        forEachBlock(context, batch) { pixel, pixels in
            let dx = dx + pixel * from
            var dy = UnsafePointer(context.outputGradient + pixel * to)
            dx.update(repeating: 0, count: pixels * from)
            for run in runs {
                imprint_add_columns(dy, to, dx + run.from, from, pixels, run.count)
                dy += run.count
            }
        }
    }

    /// Calls `body(first pixel, pixel count)` for blocks of pixels that stay in cache for all runs.
    private func forEachBlock(_ context: LayerContext, _ batch: Int, _ body: (_ pixel: Int, _ pixels: Int) -> Void) {
        let elements = context.input.shape.channels + context.output.shape.channels
        let size = max(8, (1 << 12) / elements)
        forEachRows(batch * context.output.shape.pixels, elements, context.worker) { pixels in
            for first in stride(from: pixels.lowerBound, to: pixels.upperBound, by: size) {
                body(first, min(size, pixels.upperBound - first))
            }
        }
    }
}

extension SelectChannels: Codable {
    private enum Key: String, CodingKey {
        case channels
    }

    /// Decodes `{"channels"}`, a list of indices and of `{"from", "count"}` for runs.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        self.init(runs: try values.decode([Run].self, forKey: .channels))
    }

    /// Encodes `{"channels"}`, a list of indices and of `{"from", "count"}` for runs.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Key.self)
        try values.encode(runs, forKey: .channels)
    }
}

extension SelectChannels.Run: Codable {
    private enum Key: String, CodingKey {
        case from, count
    }

    init(from decoder: any Decoder) throws {
        if let channel = try? decoder.singleValueContainer().decode(Int.self) {
            self.init(from: channel, count: 1)
        } else {
            let values = try decoder.container(keyedBy: Key.self)
            self.init(
                from: try values.decode(Int.self, forKey: .from), count: try values.decode(Int.self, forKey: .count))
            // `outputShape` checks the range of the input; this check prevents overflow.
            let limit = Int(Int32.max)
            try check(
                "SelectChannels", "channels", "\(count) from index \(from)",
                (1...limit).contains(count) && (0...limit).contains(from),
                "a count of at least 1, from an index of at least 0")
        }
    }

    func encode(to encoder: any Encoder) throws {
        if count == 1 {
            var value = encoder.singleValueContainer()
            try value.encode(from)
        } else {
            var values = encoder.container(keyedBy: Key.self)
            try values.encode(from, forKey: .from)
            try values.encode(count, forKey: .count)
        }
    }
}
