import CImprintKernels
import ImprintCore
import Testing

@testable import ImprintNetwork

/// Compares the kernels that slide a window over an image with plain loops.
///
/// All values are small integers, so sums are exact in any order, and windows contain equal values.
@Suite struct WindowKernelTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let input: TensorShape
        let kernel: Size2D
        let stride: Size2D
        var dilation: Size2D = 1
        let padding: Padding

        var testDescription: String { "\(input): kernel \(kernel), stride \(stride), dilation \(dilation), \(padding)" }
        var window: imprint_window {
            Window(kernel: kernel, stride: stride, dilation: dilation, padding: padding).kernelWindow(over: input)
        }
        var naive: NaiveWindow {
            NaiveWindow(input: input, kernel: kernel, stride: stride, dilation: dilation, padding: padding)
        }
        var channels: Int { input.channels }
        var inputCount: Int { input.count }
        var outputCount: Int { naive.output.count }
        var weightCount: Int { kernel.height * kernel.width * channels }

        /// Whether every window contains a pixel of the image, which pools require.
        var canPool: Bool {
            guard case .explicit(let top, let left, let bottom, let right) = padding else { return false }
            return max(top, bottom) < kernel.height && max(left, right) < kernel.width
        }

        /// Calls `body(output, tap, input)` with element indices for every channel and every tap inside the image.
        func forEachValue(_ body: (_ output: Int, _ tap: Int, _ input: Int) -> Void) {
            naive.forEachTap(1) { outputPixel, tap, inputPixel in
                guard let inputPixel else { return }
                for c in 0..<channels {
                    body(outputPixel * channels + c, tap * channels + c, inputPixel * channels + c)
                }
            }
        }
    }

    /// All combinations of kernel, stride, padding and channel count, over images with sides of 1 to 9 pixels.
    static let small: [Case] = {
        var cases: [Case] = []
        for channels in [1, 3, 15, 16, 17, 40, 64] {
            for kernel in [2, 3, 5, 7] {
                for stride in 1...3 {
                    for padding in 0...2 {
                        let (top, left, bottom, right) = (padding, (padding + 1) % 3, (padding + 2) % 3, padding)
                        let height = max(1 + cases.count * 4 % 9, kernel - top - bottom)
                        let width = max(1 + cases.count * 7 % 9, kernel - left - right)
                        cases.append(
                            Case(
                                input: TensorShape(height: height, width: width, channels: channels),
                                kernel: Size2D(kernel),
                                stride: Size2D(stride),
                                padding: .explicit(top: top, left: left, bottom: bottom, right: right)))
                    }
                }
            }
        }
        return cases
    }()

    /// Windows that are not square or dilated, more channels than one block, and images larger than the caches.
    static let special: [Case] = [
        Case(
            input: TensorShape(height: 7, width: 9, channels: 18), kernel: Size2D(height: 3, width: 5),
            stride: Size2D(height: 2, width: 1), padding: .all(1)),
        Case(
            input: TensorShape(height: 9, width: 8, channels: 16), kernel: 3, stride: 1,
            dilation: Size2D(height: 2, width: 3), padding: .all(2)),
        Case(
            input: TensorShape(height: 9, width: 8, channels: 17), kernel: 3, stride: 2, dilation: 2, padding: .all(1)),
        Case(input: TensorShape(height: 12, width: 13, channels: 18), kernel: 5, stride: 1, padding: .all(2)),
        Case(input: TensorShape(height: 12, width: 13, channels: 3), kernel: 7, stride: 2, padding: .all(3)),
        Case(input: TensorShape(height: 7, width: 7, channels: 300), kernel: 3, stride: 1, padding: .all(1)),
        Case(input: TensorShape(height: 33, width: 31, channels: 136), kernel: 3, stride: 1, padding: .all(1)),
        Case(input: TensorShape(height: 33, width: 31, channels: 136), kernel: 3, stride: 2, padding: .all(1)),
        Case(input: TensorShape(height: 33, width: 31, channels: 136), kernel: 2, stride: 2, padding: .all(0)),
        Case(input: TensorShape(height: 33, width: 32, channels: 136), kernel: 5, stride: 2, padding: .all(2)),
    ]

    @Test("Depthwise convolution agrees with plain loops", arguments: small + special)
    func depthwise(_ test: Case) {
        let (x, weight) = (integers(test.inputCount, "x"), integers(test.weightCount, "weight"))
        let dy = integers(test.outputCount, "dy")
        let before = integers(test.weightCount, "dweight")
        var y = [Float](repeating: 0, count: test.outputCount)
        var dx = [Float](repeating: 0, count: test.inputCount)
        var dWeight = before
        test.forEachValue { output, tap, input in
            y[output] += x[input] * weight[tap]
            dx[input] += dy[output] * weight[tap]
            dWeight[tap] += x[input] * dy[output]
        }
        var window = test.window
        let rows = window.output_height
        var finish = imprint_bias_clamp(bias: nil, floor: -.infinity, ceiling: .infinity)
        expect(y, "y") { imprint_depthwise_forward(&window, x, weight, $0, 0, rows, &finish) }
        let bias = integers(test.channels, "bias")
        let finished = y.indices.map { min(max(y[$0] + bias[$0 % test.channels], -0.5), 0.25) }
        bias.withUnsafeBufferPointer { bias in
            finish = imprint_bias_clamp(bias: bias.baseAddress, floor: -0.5, ceiling: 0.25)
            expect(finished, "y in two parts, finished") {
                let first = min(rows, 2)
                imprint_depthwise_forward(&window, x, weight, $0, first, rows - first, &finish)
                imprint_depthwise_forward(&window, x, weight, $0, 0, first, &finish)
            }
        }
        expect(dx, "dx") { imprint_depthwise_backward_input(&window, dy, weight, $0) }
        expect(dWeight, "dweight", from: before) { imprint_depthwise_backward_weight(&window, x, dy, $0) }
    }

    @Test("im2col and col2im agree with plain loops", arguments: small + special) func im2col(_ test: Case) {
        let pixels = test.naive.output.height * test.naive.output.width
        let taps = test.kernel.height * test.kernel.width
        // All channels and pixels, and a group of channels with a block of pixels.
        let parts = [(0..<test.channels, 0..<pixels), (test.channels / 2..<test.channels, pixels / 3..<pixels)]
        for (channels, rows) in parts {
            let x = integers(test.inputCount, "x")
            let before = integers(test.inputCount, "dx")
            let dColumns = integers(rows.count * taps * channels.count, "dcolumns")
            var columns = [Float](repeating: 0, count: dColumns.count)
            var dx = before
            test.naive.forEachTap(1) { pixel, tap, inputPixel in
                guard let inputPixel, rows.contains(pixel) else { return }
                for c in channels {
                    let column = ((pixel - rows.lowerBound) * taps + tap) * channels.count + c - channels.lowerBound
                    columns[column] = x[inputPixel * test.channels + c]
                    dx[inputPixel * test.channels + c] += dColumns[column]
                }
            }
            var window = test.window
            expect(columns, "columns of channels \(channels)") {
                imprint_im2col(&window, x, channels.lowerBound, channels.count, rows.lowerBound, rows.count, $0)
            }
            expect(dx, "dx of channels \(channels)", from: before) {
                imprint_col2im(&window, dColumns, channels.lowerBound, channels.count, rows.lowerBound, rows.count, $0)
            }
        }
    }

    @Test("Max pooling agrees with plain loops", arguments: (small + special).filter(\.canPool))
    func maxPool(_ test: Case) {
        let x = integers(test.inputCount, "x")
        let dy = integers(test.outputCount, "dy")
        var y = [Float](repeating: -.infinity, count: test.outputCount)
        var choice = [UInt8](repeating: 0, count: test.outputCount)
        test.forEachValue { output, tap, input in
            guard x[input] > y[output] else { return }
            y[output] = x[input]
            choice[output] = UInt8(tap / test.channels)
        }
        var dx = [Float](repeating: 0, count: test.inputCount)
        test.forEachValue { output, tap, input in
            if choice[output] == tap / test.channels { dx[input] += dy[output] }
        }
        var window = test.window
        var chosen = [UInt8](repeating: 255, count: choice.count + Self.guardCount)
        expect(y, "y") { imprint_max_pool_forward(&window, x, $0, &chosen) }
        #expect(chosen == choice + [UInt8](repeating: 255, count: Self.guardCount))
        expect(y, "y without choices") { imprint_max_pool_forward(&window, x, $0, nil) }
        expect(dx, "dx") { imprint_max_pool_backward(&window, dy, choice, $0) }
    }

    @Test("The maximum of a window with NaN is NaN, at any position in the window", arguments: [3, 17], [2, 3])
    func nan(channels: Int, kernel: Int) {
        let test = Case(
            input: TensorShape(height: 6, width: 6, channels: channels), kernel: Size2D(kernel), stride: Size2D(kernel),
            padding: .all(0))
        for position in 0..<(kernel * kernel) {
            var x = integers(test.inputCount, "x")
            let pixel = position / kernel * 6 + position % kernel
            x[pixel * channels + 2] = .nan
            var y = [Float](repeating: 0, count: test.outputCount)
            var choice = [UInt8](repeating: 255, count: test.outputCount)
            var window = test.window
            imprint_max_pool_forward(&window, x, &y, &choice)
            #expect(y.indices.filter { y[$0].isNaN } == [2] && Int(choice[2]) == position)
            imprint_max_pool_forward(&window, x, &y, nil)
            #expect(y.indices.filter { y[$0].isNaN } == [2])
        }
    }

    @Test("Average pooling agrees with plain loops", arguments: (small + special).filter(\.canPool), [false, true])
    func averagePool(_ test: Case, countsPadding: Bool) {
        let x = integers(test.inputCount, "x")
        let dy = integers(test.outputCount, "dy")
        var y = [Float](repeating: 0, count: test.outputCount)
        var counts = [Int](repeating: 0, count: test.outputCount)
        test.forEachValue { output, _, input in
            y[output] += x[input]
            counts[output] += 1
        }
        if countsPadding { counts = counts.map { _ in test.kernel.height * test.kernel.width } }
        y = y.indices.map { y[$0] * (1 / Float(counts[$0])) }
        var dx = [Float](repeating: 0, count: test.inputCount)
        test.forEachValue { output, _, input in dx[input] += dy[output] / Float(counts[output]) }
        var window = test.window
        expect(y, "y") { imprint_average_pool_forward(&window, x, $0, countsPadding ? 1 : 0) }
        // Quotients are not integers: each of up to 49 sums of up to 4 in magnitude can round.
        expect(dx, "dx", within: 1e-4) { imprint_average_pool_backward(&window, dy, $0, countsPadding ? 1 : 0) }
    }

    /// The number of sentinel values after every result, which detect writes out of bounds.
    private static let guardCount = 64

    /// Returns random integers from -4 to 4.
    private func integers(_ count: Int, _ name: String) -> [Float] {
        var random = RandomStream(seed: 1, name)
        return (0..<count).map { _ in Float(Int.random(in: -4...4, using: &random)) }
    }

    /// Checks the values that `kernel` writes to a buffer with the contents `start`, or NaN.
    private func expect(
        _ expected: [Float], _ name: String, from start: [Float]? = nil, within tolerance: Float = 0,
        location: SourceLocation = #_sourceLocation, _ kernel: (UnsafeMutablePointer<Float>) -> Void
    ) {
        let sentinels = [Float](repeating: 12345, count: Self.guardCount)
        var result = (start ?? [Float](repeating: .nan, count: expected.count)) + sentinels
        result.withUnsafeMutableBufferPointer { kernel($0.baseAddress!) }
        if let wrong = expected.indices.first(where: { !(abs(result[$0] - expected[$0]) <= tolerance) }) {
            Issue.record("\(name)[\(wrong)] is \(result[wrong]), expected \(expected[wrong])", sourceLocation: location)
        }
        #expect(Array(result[expected.count...]) == sentinels, "\(name): out of bounds", sourceLocation: location)
    }
}
