internal import CImprintKernels

/// Channels taken out, put in another order or repeated, y[…, k] = x[…, `channels`[k]]: [H, W, C] becomes
/// [H, W, channels.count].
///
/// The gradient of a channel is the sum over its copies, in their order; 0 if it has none.
public struct SelectChannels: Layer {
    public static let kind = "selectChannels"

    /// Neighbouring channels.
    fileprivate struct Run: Hashable, Sendable {
        let from: Int
        let count: Int
    }

    /// As long as can be, so that equal lists have equal runs.
    ///
    /// A list from a file is not written out: a few words may stand for billions.
    private let runs: [Run]

    /// The channel that each of the result's comes from.
    public var channels: [Int] { runs.flatMap { $0.from...($0.from + ($0.count - 1)) } }

    /// Makes the layer of a list of channels, counted from 0, in any order.
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
                "SelectChannels", "channels", "\(run.count) from \(run.from) on", isInside,
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

    /// Calls `body` with the first of a few pixels, which fit into the cache for all runs, and how many there are.
    private func forEachBlock(_ context: LayerContext, _ batch: Int, _ body: (_ pixel: Int, _ pixels: Int) -> Void) {
        let numbers = context.input.shape.channels + context.output.shape.channels
        let size = max(8, (1 << 12) / numbers)
        forEachRows(batch * context.output.shape.pixels, numbers, context.worker) { pixels in
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

    /// Reads `{"channels"}`, a list of numbers and of `{"from", "count"}` for neighbours.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        self.init(runs: try values.decode([Run].self, forKey: .channels))
    }

    /// Writes `{"channels"}`, a list of numbers and of `{"from", "count"}` for neighbours.
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
            // What is out of the input's range is found by outputShape; here no sum may overflow.
            let limit = Int(Int32.max)
            try check(
                "SelectChannels", "channels", "\(count) from \(from) on",
                (1...limit).contains(count) && (0...limit).contains(from), "a count of at least 1, from at least 0 on")
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
